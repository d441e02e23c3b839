package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// publishing is a forge with a repository, and what runs there need.
type publishing struct {
	workshop
	forge *forgetest.Forge
	repo  *forgetest.Repository
	runs  int
}

func newPublishing(t *testing.T) *publishing {
	t.Helper()
	forge := forgetest.New(t, forgetest.Options{User: forgetest.User{Login: "helper[bot]", ID: 9, Type: "Bot"}})
	w := &publishing{
		forge: forge, repo: forge.AddRepository("octo", "widgets"),
		workshop: newWorkshop(t, "GITHUB_API_URL="+forge.APIURL, "GITHUB_SERVER_URL="+forge.URL, "GITHUB_TOKEN="+forge.Token),
	}
	seed := filepath.Join(w.dir, "seed")
	w.git(w.dir, "init", "--quiet", "--initial-branch=main", seed)
	w.write("seed/greet.sh", "echo one\n")
	w.git(seed, "add", "--all")
	w.git(seed, "commit", "--quiet", "--message=begin")
	w.git(seed, "push", "--quiet", w.repo.Dir, "main")
	w.session("louder", "sed -i s/one/ONE/ greet.sh")
	w.session("mode", "chmod 755 greet.sh")
	return w
}

// session writes a scripted session of one command.
func (w *publishing) session(name, command string) {
	w.write(name+".yml", fmt.Sprintf("version: 1\nturns:\n  - output: [{call: exec_command, arguments: {cmd: %q}}]\n  - output: [{say: Done.}]\n", command))
}

// run is a run of the task in a fresh clone, not started yet.
func (w *publishing) run(session string, sets ...string) (*exec.Cmd, *strings.Builder) {
	w.t.Helper()
	w.runs++
	clone := filepath.Join(w.dir, fmt.Sprintf("clone%d", w.runs))
	w.git(w.dir, "clone", "--quiet", w.repo.Dir, clone)
	w.git(clone, "remote", "set-url", "origin", w.forge.URL+"/octo/widgets.git")
	args := []string{"run", "--prompt", "x", "--quiet", "--repo", clone, "--replay", filepath.Join(w.dir, session+".yml"), "--out", fmt.Sprintf("%s.run", clone), "--set", "name=task"}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	cmd, out := exec.Command(binary, args...), &strings.Builder{}
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, w.dir, out, out
	return cmd, out
}

// moveBase pushes a commit to the base branch.
func (w *publishing) moveBase() {
	w.t.Helper()
	seed := filepath.Join(w.dir, "seed")
	w.write("seed/other.txt", "other\n")
	w.git(seed, "add", "--all")
	w.git(seed, "commit", "--quiet", "--message=moved")
	w.git(seed, "push", "--quiet", w.repo.Dir, "main")
}

func (w *publishing) finish(session string, sets ...string) string {
	w.t.Helper()
	cmd, out := w.run(session, sets...)
	_ = cmd.Run()
	return out.String()
}

// changes says whether a request is one of publishing.
func changes(r forgetest.Request) bool {
	return strings.HasSuffix(r.Path, "/git-receive-pack") || r.Method != "GET"
}

// TestKilledWhilePublishing kills runs before and after each request from the
// first that changes something on; the next run of the task finishes the job.
func TestKilledWhilePublishing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a run for each request")
	}
	for _, c := range []struct {
		name  string
		sets  []string
		moves bool // the base, after the first run has its checkout
	}{
		{"pushed", nil, false},
		{"made by the API", []string{"pull_request.commit.sign=github"}, false},
		{"onto a base that moved", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets := append([]string{"pull_request.labels=[bot]", "pull_request.assignees=[hubot]"}, c.sets...)
			w := newPublishing(t)
			cmd, out := w.run("louder", sets...)
			if c.moves {
				w.moveBase()
			}
			if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), "changed/pull_request: ") {
				t.Fatalf("the undisturbed run ended in %s, %v", out, err)
			}
			requests := w.forge.Requests()
			first := slices.IndexFunc(requests, changes)
			t.Logf("%d requests, the first change is %d", len(requests), first)
			want := w.repo.PullRequests()
			for n := first; n < len(requests); n++ {
				for _, moment := range moments(requests[n]) {
					t.Run(fmt.Sprintf("%s %s %s (%d)", moment, requests[n].Method, requests[n].Path, n), func(t *testing.T) {
						killAt(t, n, moment, want, c.moves, sets)
					})
				}
			}
		})
	}
}

// moments are when to kill a run: after a request that changes nothing it is as
// before the next.
func moments(r forgetest.Request) []string {
	if changes(r) {
		return []string{"before", "after"}
	}
	return []string{"before"}
}

func killAt(t *testing.T, n int, moment string, want []forgetest.PullRequest, moves bool, sets []string) {
	w := newPublishing(t)
	cmd, out := w.run("louder", sets...)
	if moves {
		w.moveBase()
	}
	started := make(chan struct{})
	var mu sync.Mutex
	count := 0
	kill := func() bool {
		<-started
		mu.Lock()
		defer mu.Unlock()
		count++
		if count != n+1 {
			return true
		}
		_ = cmd.Process.Kill()
		return false
	}
	if moment == "before" {
		w.forge.Watch(func(forgetest.Request) bool { return kill() }, nil)
	} else {
		w.forge.Watch(nil, func(forgetest.Request) { kill() })
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the run was not killed: %v\n%s", err, out)
	}
	w.forge.Watch(nil, nil)
	second := w.finish("louder", sets...)
	if !strings.HasPrefix(second, "changed/pull_request: ") && !strings.HasPrefix(second, "no_changes/already_published: ") {
		t.Fatalf("the second run ended in %s", second)
	}
	got := w.repo.PullRequests()
	for i := range got {
		got[i].NodeID, got[i].Body = want[0].NodeID, want[0].Body // runs have names and times of their own
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pull requests (-want +got):\n%s\n%s", diff, second)
	}
	if got := w.git(w.repo.Dir, "show", "agent-ci/task:greet.sh"); got != "echo ONE" {
		t.Errorf("the branch holds %q", got)
	}
	if got := w.git(w.repo.Dir, "rev-list", "--count", "main..agent-ci/task"); got != "1" {
		t.Errorf("the branch has %s commits", got)
	}
	if third := w.finish("louder", sets...); !strings.HasPrefix(third, "no_changes/already_published: ") {
		t.Errorf("a third run ended in %s", third)
	}
}
