package publish

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

const taskBranch = "agent-ci/greet"

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// world is a forge with a repository, and a checkout of it that is worked in.
type world struct {
	t     *testing.T
	forge *forgetest.Forge
	repo  *forgetest.Repository
	dir   string // the checkout
	Publisher
}

// newWorld has main with README.md, which a checkout stands on, and the token of a bot.
func newWorld(t *testing.T) *world {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{User: forgetest.User{Login: "helper[bot]", ID: 9, Type: "Bot"}})
	checkout := gittest.New(t)
	checkout.Write("README.md", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
	checkout.Commit("Begin")
	w := &world{t: t, forge: f, repo: f.AddRepository("octo", "widgets"), dir: checkout.Dir}
	w.repo.Receive(w.dir)
	w.Publisher = Publisher{Project: w.project(), Env: settings.Environment{"PATH=" + os.Getenv("PATH"), "GITHUB_TOKEN=" + f.Token, "GITHUB_REPOSITORY=octo/widgets"}}
	w.run("20260301T090000Z-0a1b2c3d")
	return w
}

// run begins another run, with a record and a workspace of its own.
func (w *world) run(id string) {
	w.t.Helper()
	w.Record = recordtest.New(w.t, id)
	raw, err := json.Marshal(w.job())
	must.Do(w.t, err)
	must.Do(w.t, w.Record.Begin(transcript.RunStarted{RunID: id, Key: "greet", Job: raw}))
	must.Do(w.t, w.Record.Append(transcript.Task{Source: "prompt", Title: "Greet the reader", Text: "Greet the reader."}))
	w.Workspace, err = workspace.Open(w.t.Context(), w.Record, workspace.Options{Dir: w.dir, Path: os.Getenv("PATH")})
	must.Do(w.t, err)
	w.t.Cleanup(func() { w.Workspace.Close() })
	must.Do(w.t, w.Workspace.StartOn(w.t.Context(), ""))
}

// git runs git in a folder and gives what it says.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	return gittest.Repo{T: w.t, Dir: dir}.Git(args...)
}

func (w *world) put(name, content string) {
	w.t.Helper()
	gittest.Repo{T: w.t, Dir: w.dir}.Write(name, content)
}

// onForge commits a file to a branch of the forge, which is made of main where it
// is not there, and gives the commit.
func (w *world) onForge(branch, name, content, message string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "other")
	w.git(w.t.TempDir(), "clone", "--quiet", w.repo.Dir, dir)
	w.git(dir, "checkout", "--quiet", "-B", branch, w.from(branch))
	must.Do(w.t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	w.git(dir, "add", "--all")
	w.git(dir, "commit", "--quiet", "--message="+message)
	w.git(dir, "push", "--quiet", "--force", "origin", branch)
	return w.git(dir, "rev-parse", "HEAD")
}

func (w *world) from(branch string) string {
	if w.git(w.repo.Dir, "branch", "--list", branch) == "" {
		return "origin/main"
	}
	return "origin/" + branch
}

// tipOn is the commit that a branch of a repository ends in; empty for no branch.
func (w *world) tipOn(dir, branch string) string {
	w.t.Helper()
	return w.git(dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

func (w *world) job() *job.Job { return &job.Job{Task: job.Task{Expects: "change"}} }

// proposal is a change of one file in the checkout.
func (w *world) proposal(name, content string) Proposal {
	w.t.Helper()
	checkout, index := gittest.Repo{T: w.t, Dir: w.dir}, []string{"GIT_INDEX_FILE=" + filepath.Join(w.t.TempDir(), "index")}
	checkout.GitWith(index, nil, "read-tree", w.Workspace.Base().SHA)
	blob := checkout.GitWith(nil, []byte(content), "hash-object", "-w", "--stdin")
	checkout.GitWith(index, nil, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name)
	tree := gitops.Tree(checkout.GitWith(index, nil, "write-tree"))
	change := must.Get(w.Workspace.Checkout().ChangeBetween(w.t.Context(), w.Workspace.Base(), tree))(w.t)
	must.Do(w.t, w.Workspace.SaveChange(w.t.Context(), change, ""))
	return Proposal{
		RunID: w.Record.ID, Job: w.job(), Base: w.Workspace.Base(), Change: change, InCheckout: change,
		Task:         intake.Task{Key: "greet", Task: transcript.Task{Title: "Greet the reader"}, Branch: taskBranch},
		Verification: transcript.Verify{Passed: true}, Summary: "Greets the reader.",
		Judge: func(context.Context, *job.Job, *gitops.ChangeSet) error { return nil },
	}
}

func (w *world) toForge() Forge {
	w.t.Helper()
	w.Project = w.project()
	return Forge{w.Publisher}
}

// project is the repository with a new client of the forge.
func (w *world) project() Project {
	w.t.Helper()
	client := must.Get(github.New(github.Options{APIURL: w.forge.APIURL, ServerURL: w.forge.URL, Token: w.forge.Token}))(w.t)
	return Project{Forge: client, Repo: client.Repository("octo/widgets"), ServerURL: w.forge.URL}
}

func (w *world) toLocal() Local { return Local{w.Publisher} }

// publish publishes a proposal that is to come through.
func (w *world) publish(to Destination, p Proposal) Publication {
	w.t.Helper()
	var out Publication
	must.Do(w.t, Publish(w.t.Context(), to, p, &out))
	return out
}

// refused publishes one that is to be stopped for a reason.
func (w *world) refused(to Destination, p Proposal, reason string) (Publication, *outcome.Stop) {
	w.t.Helper()
	var out Publication
	err := Publish(w.t.Context(), to, p, &out)
	return out, outcometest.Want(w.t, err, reason)
}

// pull is the one pull request of the forge.
func (w *world) pull() forgetest.PullRequest {
	w.t.Helper()
	all := w.repo.PullRequests()
	if len(all) != 1 {
		w.t.Fatalf("%d pull requests, want one", len(all))
	}
	return all[0]
}

func (w *world) warned(code string) bool {
	for _, warning := range w.Record.Warnings() {
		if warning.Code == code {
			return true
		}
	}
	return false
}

func (w *world) wantWarning(code string) {
	w.t.Helper()
	if !w.warned(code) {
		w.t.Errorf("no warning %s among %v", code, w.Record.Warnings())
	}
}

var _ forge.Forge = (*github.Client)(nil)
