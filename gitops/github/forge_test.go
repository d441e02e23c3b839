package github_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// history has the branches main and feature/topic, which is one commit ahead.
const history = `commit refs/heads/main
mark :1
committer Tester <tester@example.invalid> 1767323045 +0000
data 5
Begin
M 100644 inline greet.txt
data 5
hello
commit refs/heads/feature/topic
mark :2
committer Tester <tester@example.invalid> 1767323105 +0000
data 5
Go on
from :1
M 100644 inline greet.txt
data 7
goodbye
`

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// newForge is a forge with the repository octo/widgets, and a handle of that.
func newForge(t *testing.T) (*forgetest.Forge, *forgetest.Repository, forge.Repository) {
	t.Helper()
	server := forgetest.New(t, forgetest.Options{})
	repository := server.AddRepository("octo", "widgets")
	git(t, repository, history, "fast-import", "--quiet")
	return server, repository, newClient(t, server.APIURL, server.Token).Repository("octo/widgets")
}

func revision(t *testing.T, repository *forgetest.Repository, name string) string {
	t.Helper()
	return git(t, repository, "", "rev-parse", name)
}

// git runs git in the bare repository.
func git(t *testing.T, repository *forgetest.Repository, input string, args ...string) string {
	t.Helper()
	return gittest.Repo{T: t, Dir: repository.Dir}.GitWith(nil, []byte(input), args...)
}

// TestForgeCreatesOnePullRequest plays what can happen to a write: it was
// carried out and the answer is lost, it was not, or it came too early.
func TestForgeCreatesOnePullRequest(t *testing.T) {
	const pulls = "/repos/octo/widgets/pulls"
	unknownHead := `{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid"}]}`
	for _, c := range []struct {
		name   string
		faults []forgetest.Reply
	}{
		{"the answer is lost", []forgetest.Reply{{Status: 502, Late: true}}},
		{"the connection breaks after it", []forgetest.Reply{{Status: -1, Late: true}}},
		{"the connection breaks before it", []forgetest.Reply{{Status: -1}}},
		{"a storm", []forgetest.Reply{{Status: 500}, {Status: 503}, {Status: 502, Late: true}}},
		{"the branch is not known yet", []forgetest.Reply{{Status: 422, Body: unknownHead}, {Status: 422, Body: unknownHead}}},
		{"a primary limit", []forgetest.Reply{{Status: 403, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}}}},
		{"a secondary limit", []forgetest.Reply{{Status: 403, Body: `{"message": "You have exceeded a secondary rate limit."}`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, repository, handle := newForge(t)
			for _, fault := range c.faults {
				server.On("POST", pulls, fault, 1)
			}
			must.Same(t, 1, must.Get(handle.CreatePullRequest(t.Context(), forge.NewPullRequest{Title: "Greet", Head: "feature/topic", Base: "main"}))(t).Number)
			must.Same(t, 1, len(repository.PullRequests()), "pull requests")
		})
	}
}

func TestRetriesLabelsOfNewPullRequest(t *testing.T) {
	server, repository, handle := newForge(t)
	repository.AddIssue(forgetest.Issue{Title: "Greet"})
	server.On("POST", "/repos/octo/widgets/issues/1/labels", forgetest.Reply{Status: 404, Body: `{"message": "Not Found"}`}, 1)
	server.On("POST", "/repos/octo/widgets/issues/1/labels", forgetest.Reply{Status: 422, Body: `{"message": "Could not resolve to a node with the global id of 'PR_1'."}`}, 1)
	must.Do(t, handle.AddLabels(t.Context(), 1, []string{"bug"}))
}

// TestForgeMakesCommits makes a change by REST and compares its tree with that
// of git.
func TestForgeMakesCommits(t *testing.T) {
	for _, c := range []struct {
		name     string
		user     forgetest.User
		verified bool
	}{
		{"an app", forgetest.User{Login: "helper[bot]", ID: 7, Type: "Bot"}, true},
		{"a person", forgetest.User{Login: "monalisa", ID: 8, Type: "User"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := forgetest.New(t, forgetest.Options{User: c.user})
			repository := server.AddRepository("octo", "widgets")
			files := "commit refs/heads/main\ncommitter Tester <tester@example.invalid> 1767323045 +0000\ndata 5\nBegin\n"
			for i := range 250 {
				files += fmt.Sprintf("M 100644 inline \"file %d\"\ndata 1\nx\n", i)
			}
			git(t, repository, files, "fast-import", "--quiet")
			handle := newClient(t, server.APIURL, server.Token).Repository("octo/widgets")
			ctx := t.Context()
			id := must.Get(handle.CreateBlob(ctx, strings.NewReader("a\x00\xff")))(t)
			edits := []forge.TreeEdit{{Path: "d/ü \"x", Mode: "100755", ID: id}, {Path: "link", Mode: "120000", ID: id}}
			for i := range 248 {
				edits = append(edits, forge.TreeEdit{Path: fmt.Sprintf("file %d", i)})
			}
			base := must.Get(handle.Branch(ctx, "main"))(t)
			tree := must.Get(handle.CreateTree(ctx, base.Tree, edits))(t)
			made := must.Get(handle.CreateCommit(ctx, "greet\n\nwell\n", tree, base.SHA))(t)
			must.Same(t, c.verified, made.Verified, "made", made)
			must.Do(t, handle.CreateBranch(ctx, "agent-ci/x", made.SHA))
			must.Same(t, forge.Invalid, forge.KindOf(handle.CreateBranch(ctx, "agent-ci/x", made.SHA)), "a branch was made twice")
			want := "100755 blob " + id + "\td/ü \"x\x00" + "100644 blob c1b0730e0133447badcfd47fd144e254807b06e1\tfile 248\x00" +
				"100644 blob c1b0730e0133447badcfd47fd144e254807b06e1\tfile 249\x00" + "120000 blob " + id + "\tlink\x00"
			must.Same(t, want, git(t, repository, "", "ls-tree", "-r", "-z", "agent-ci/x"), "the tree")
		})
	}
}
