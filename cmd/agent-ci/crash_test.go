package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
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
	w.write("seed/greet.sh", "echo one\n")
	w.repository(seed)
	w.repo.Receive(seed)
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
	return w.command(args...)
}

// moveBase pushes a commit to the base branch.
func (w *publishing) moveBase() {
	w.t.Helper()
	w.write("seed/other.txt", "other\n")
	w.pushSeed()
}

// pushSeed commits the files in seed, and pushes them to the base branch.
func (w *publishing) pushSeed() {
	w.t.Helper()
	seed := filepath.Join(w.dir, "seed")
	w.git(seed, "add", "--all")
	w.git(seed, "commit", "--quiet", "--message=more")
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
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a run for each request")
	}
	red := []string{"verify=[{name: v, run: 'false'}]", "verify_attempts=0"}
	for _, c := range []struct {
		name   string
		sets   []string
		moves  bool     // the base, after the first run has its checkout
		before []string // settings of a run that has published before; nil for none
		after  []string // of the runs that finish the job, beside the common ones
	}{
		{name: "pushed"},
		{name: "made by the API", sets: []string{"pull_request.commit.sign=github"}, after: []string{"pull_request.commit.sign=github"}},
		{name: "onto a base that moved", moves: true},
		{name: "of a draft that becomes ready", before: red},
		{name: "of a ready one that becomes a draft", before: []string{}, sets: red},
	} {
		t.Run(c.name, func(t *testing.T) {
			common := []string{"pull_request.labels=[bot]", "pull_request.assignees=[hubot]"}
			e := ending{moves: c.moves, before: c.before, sets: append(c.sets, common...), after: append(c.after, common...)}
			if c.before != nil {
				e.before = append(e.before, common...)
			}
			w, cmd, out := e.begin(t)
			_ = cmd.Run()
			w.namesPull(out.String())
			requests := w.forge.Requests()[e.requests:]
			first := slices.IndexFunc(requests, changes)
			t.Logf("%d requests, the first change is %d", len(requests), first)
			if len(c.sets) > 0 {
				w.finish("louder", e.after...)
			}
			e.want = w.repo.PullRequests()
			for n := first; n < len(requests); n++ {
				for _, e.moment = range moments(requests[n]) {
					for _, e.signal = range []os.Signal{os.Kill, syscall.SIGTERM} {
						if e.signal != os.Kill && !changes(requests[n]) {
							continue
						}
						t.Run(fmt.Sprintf("%v %s %s %s (%d)", e.signal, e.moment, requests[n].Method, requests[n].Path, n), func(t *testing.T) {
							e.at(t, n)
						})
					}
				}
			}
		})
	}
}

// ending is how runs are ended while they publish.
type ending struct {
	moves               bool // the base
	before, sets, after []string
	want                []forgetest.PullRequest
	moment              string
	signal              os.Signal
	requests            int // before the run
}

// begin makes the world as the run finds it that is to end.
func (e *ending) begin(t *testing.T) (w *publishing, cmd *exec.Cmd, out *strings.Builder) {
	w = newPublishing(t)
	if e.before != nil {
		if told := w.finish("louder", e.before...); !strings.Contains(told, "Pull request #1 was created") {
			t.Fatalf("the run before ended in %s", told)
		}
	}
	cmd, out = w.run("louder", e.sets...)
	if e.moves {
		w.moveBase()
	}
	e.requests = len(w.forge.Requests())
	return w, cmd, out
}

// moments are when to kill a run: after a request that changes nothing it is as
// before the next.
func moments(r forgetest.Request) []string {
	if changes(r) {
		return []string{"before", "after"}
	}
	return []string{"before"}
}

// at signals a run at its n-th request, and has the next runs of the task finish the job.
func (e *ending) at(t *testing.T, n int) {
	w, cmd, out := e.begin(t)
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
		_ = cmd.Process.Signal(e.signal)
		return false
	}
	if e.moment == "before" {
		w.forge.Watch(func(forgetest.Request) bool { return kill() }, nil)
	} else {
		w.forge.Watch(nil, func(forgetest.Request) { kill() })
	}
	must.Do(t, cmd.Start())
	close(started)
	err := cmd.Wait()
	if e.signal == os.Kill && (err == nil || cmd.ProcessState.Exited()) {
		t.Fatalf("the run was not killed: %v\n%s", err, out)
	}
	w.forge.Watch(nil, nil)
	second := w.finish("louder", e.after...)
	if !strings.HasPrefix(second, "changed/pull_request: ") && !strings.HasPrefix(second, "no_changes/already_published: ") {
		t.Fatalf("the second run ended in %s", second)
	}
	w.namesPull(second)
	got := w.repo.PullRequests()
	for i := range got {
		got[i].NodeID, got[i].Body = e.want[0].NodeID, e.want[0].Body // runs have names and times of their own
	}
	must.Same(t, e.want, got, "pull requests", second)
	must.Same(t, "echo ONE", w.git(w.repo.Dir, "show", "agent-ci/task:greet.sh"), "the branch holds")
	must.Same(t, "1", w.git(w.repo.Dir, "rev-list", "--count", "main..agent-ci/task"), "commits of the branch")
	if third := w.finish("louder", e.after...); !strings.HasPrefix(third, "no_changes/already_published: ") {
		t.Errorf("a third run ended in %s", third)
	}
	w.namesPull("")
}

// namesPull makes sure that the result of the last run names the pull request, whoever opened it.
func (w *publishing) namesPull(out string) {
	w.t.Helper()
	if raw := read(w.t, filepath.Join(w.dir, fmt.Sprintf("clone%d.run", w.runs), record.ResultFile)); !strings.Contains(raw, `"number": 1`) {
		w.t.Errorf("the result names no pull request: %s%s", out, raw)
	}
}
