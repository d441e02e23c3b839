package resolve_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/resolve"
)

const thousands = 10_000

// newForge is a forge on which octo-org has so many repositories.
func newForge(t *testing.T, repositories int) (*forgetest.Forge, *github.Client) {
	t.Helper()
	server := forgetest.New(t, forgetest.Options{})
	first := server.AddRepository("elsewhere", "first")
	for i := range repositories {
		server.AddTwin(first, "octo-org", fmt.Sprintf("r%05d", i))
	}
	client := must.Get(github.New(github.Options{APIURL: server.APIURL, Token: server.Token}))(t)
	return server, client
}

func load(t *testing.T, targets string) *spec.Campaign {
	t.Helper()
	return must.Get(spec.Load("campaign.yml", []byte("version: 1\nname: bump\ntargets: "+targets+"\njob: {version: 1, task: {prompt: \"Bump ${{ target.repository }} to ${{ values.to }}.\"}}\n"), nil))(t)
}

func TestTenThousandTargetsTakeFewRequests(t *testing.T) {
	server, client := newForge(t, thousands)
	folder := t.TempDir()
	var lines strings.Builder
	for i := range thousands {
		fmt.Fprintf(&lines, "octo-org/r%05d\n", i)
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "targets.txt"), []byte(lines.String()), 0o600))
	keys := map[string]string{}
	for _, from := range []string{"{file: targets.txt}", "{queries: [{organisation: octo-org}]}"} {
		before := len(server.Requests())
		targets, err := resolve.Targets(t.Context(), resolve.Options{Campaign: load(t, from), File: "campaign.yml", Folder: folder, Forge: client})
		if err != nil || len(targets) != thousands {
			t.Fatalf("%s: %d targets, %v", from, len(targets), err)
		}
		if asked := len(server.Requests()) - before; asked > 110 {
			t.Errorf("%s: %d requests", from, asked)
		}
		for i, target := range targets {
			if target.Repository != fmt.Sprintf("octo-org/r%05d", i) || target.Blocker != "the repository has no commit" {
				t.Fatalf("%s: the target %d is %+v", from, i, target)
			}
			if known := keys[target.Repository]; known != "" && known != target.Key {
				t.Fatalf("%s has the keys %s and %s", target.Repository, known, target.Key)
			}
			keys[target.Repository] = target.Key
		}
	}
}

// An open pull request is found by the branch of the target, also among those that are listed.
func TestFindsOpenPullRequests(t *testing.T) {
	server := forgetest.New(t, forgetest.Options{})
	repository := server.AddRepository("octo-org", "widgets")
	bare := gittest.Repo{T: t, Dir: repository.Dir}
	tree := bare.Git("hash-object", "-t", "tree", "-w", os.DevNull)
	base := bare.Git("commit-tree", tree, "-m", "begin")
	bare.Git("update-ref", "refs/heads/main", base)
	client := must.Get(github.New(github.Options{APIURL: server.APIURL, Token: server.Token}))(t)
	key := campaign.KeyOf("bump", campaign.Target{Repository: "octo-org/widgets"})
	bare.Git("update-ref", "refs/heads/agent-ci/"+key, bare.Git("commit-tree", tree, "-p", base, "-m", "more"))
	open(t, client, "agent-ci/"+key)
	for _, from := range []string{"{list: [{repository: octo-org/widgets}]}", "{queries: [{organisation: octo-org}]}"} {
		targets, err := resolve.Targets(t.Context(), resolve.Options{Campaign: load(t, from), Forge: client})
		if err != nil || len(targets) != 1 || targets[0].Existing != server.URL+"/octo-org/widgets/pull/1" {
			t.Errorf("%s: %+v, %v", from, targets, err)
			continue
		}
		if targets[0].Key != key || targets[0].SHA != base || targets[0].Base != "main" || targets[0].Blocker != "the job's task.prompt needs values.to, which the target lacks" {
			t.Errorf("%s: %+v", from, targets[0])
		}
	}
}

// The old name of a repository and its new one are the same place.
func TestDistinguishesTargetsByBaseAndValues(t *testing.T) {
	_, client := newForge(t, 1)
	c := load(t, `{list: [{repository: octo-org/r00000, values: {to: "2"}}, {repository: Octo-Org/R00000, base: main, values: {to: "2"}}, {repository: octo-org/r00000, values: {to: "3"}}]}`)
	targets, err := resolve.Targets(t.Context(), resolve.Options{Campaign: c, Forge: client})
	if err != nil || len(targets) != 3 { // the branch main is another one than none, where there is no commit
		t.Errorf("%d targets, %v: %+v", len(targets), err, targets)
	}
}

func TestRefusesTargetFileOutsideFolder(t *testing.T) {
	_, client := newForge(t, 1)
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "targets.txt")
	must.Do(t, os.WriteFile(outside, []byte("octo-org/r00000\n"), 0o600))
	must.Do(t, os.Symlink(outside, filepath.Join(folder, "targets.txt")))
	must.Fail(t, "escapes", must.Err(resolve.Targets(t.Context(), resolve.Options{Campaign: load(t, "{file: targets.txt}"), Folder: folder, Forge: client})))
}
