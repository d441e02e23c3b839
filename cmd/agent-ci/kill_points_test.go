package main_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
)

// deadly answers as next does, and kills a program at one of its requests:
// before the request has an effect, or after it and before the answer.
type deadly struct {
	mu      sync.Mutex
	next    http.Handler
	program *os.Process
	at      int // the request that kills; 0 for none
	after   bool
	strike  func(program *os.Process) // in the place of a kill; the request is answered
	count   int
}

func (d *deadly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.count++
	next, program, kills, after, strike := d.next, d.program, d.count == d.at, d.after, d.strike
	d.mu.Unlock()
	if kills && strike != nil {
		strike(program)
		kills = false
	}
	if kills && !after {
		_ = program.Kill()
		panic(http.ErrAbortHandler)
	}
	if !kills {
		next.ServeHTTP(w, r)
		return
	}
	next.ServeHTTP(httptest.NewRecorder(), r)
	_ = program.Kill()
	panic(http.ErrAbortHandler)
}

// answer makes next answer from now on.
func (d *deadly) answer(next http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = next
}

// aim makes the request with that number kill the program, counted from now.
func (d *deadly) aim(program *os.Process, at int, after bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.program, d.at, d.after, d.strike, d.count = program, at, after, nil, 0
}

// aimed makes that request kill a program that is watched.
func (d *deadly) aimed(at int, after bool) func(*os.Process) func() {
	return func(program *os.Process) func() {
		d.aim(program, at, after)
		return func() {}
	}
}

// throughGate puts the gate before a model and GitHub, and returns the address of both.
func (w *killWorld) throughGate(gate *deadly, forge *forgetest.Forge, model http.Handler) string {
	w.t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/v1/", model)
	mux.Handle("/", forge)
	gate.next = mux
	server := httptest.NewServer(gate)
	w.t.Cleanup(server.Close)
	w.env = append(w.env, "OPENAI_BASE_URL="+server.URL+"/v1", "GITHUB_API_URL="+server.URL+strings.TrimPrefix(forge.APIURL, forge.URL),
		"GITHUB_SERVER_URL="+server.URL, "GITHUB_TOKEN="+forge.Token)
	return server.URL
}

// forgeCheckout adds a repository to the forge, and gives it with a checkout whose origin is at an address.
func (w *killWorld) forgeCheckout(forge *forgetest.Forge, address, name string) (repository *forgetest.Repository, repo string) {
	w.t.Helper()
	repository, repo = forge.AddRepository("octo-org", name), w.checkout(name)
	repository.Receive(repo)
	w.git(repo, "remote", "add", "origin", address+"/octo-org/"+name+".git")
	return repository, repo
}

// plan is aim for something else than a kill.
func (d *deadly) plan(program *os.Process, at int, strike func(program *os.Process)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.program, d.at, d.strike, d.count = program, at, strike, 0
}

// TestKilledAtEachRequest kills a run, and what goes on with it, at each request
// to the model and to GitHub, git's included; at every third one without
// AGENT_CI_KILLS=100.
func TestKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	killedAtEachRequest(t, newKillWorld(t), false)
}

// TestKilledAtEachRequestUnderLandlock is the same where the run can't keep its
// commands from git's folder, and compares it afterwards: in a sandbox it gets no
// namespaces of its own.
func TestKilledAtEachRequestUnderLandlock(t *testing.T) {
	t.Parallel()
	if confines() != sandbox.LevelFull {
		t.Skip("needs all layers, to leave some out")
	}
	w := newKillWorld(t)
	w.within = []string{binary, "sandbox", "--repo", w.dir, "--network", "full", "--", "env"}
	killedAtEachRequest(t, w, false)
}

// TestKilledAtEachRequestAfterTheBaseMoved is the same for a change that follows
// its base, with a file in it that no run may touch.
func TestKilledAtEachRequestAfterTheBaseMoved(t *testing.T) {
	t.Parallel()
	killedAtEachRequest(t, newKillWorld(t), true)
}

func killedAtEachRequest(t *testing.T, w *killWorld, moved bool) {
	t.Helper()
	forge := forgetest.New(t, forgetest.Options{})
	gate := new(deadly)
	address := w.throughGate(gate, forge, stepwise(3))
	if w.within != nil {
		w.within = append(append(w.within, w.env...), "XDG_STATE_HOME="+filepath.Join(w.dir, "state")) // the home folder is a sandbox's own
	}

	want := ""
	for n := 0; ; n += every(3) {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("widgets-%d-%t", n, after)
			repository, repo := w.forgeCheckout(forge, address, name)
			if moved {
				w.moveBase(repo, repository.Dir)
			}
			begin := w.git(repo, "rev-parse", "HEAD")
			text, killed := w.untilPublished(gate, n, after, repo, "run-"+name, "/pull_request: ", "--prompt", "x", "--set", "verify=[{name: t, run: test -f log.txt}]")
			pulls := repository.PullRequests()
			if len(pulls) != 1 || pulls[0].State != "open" || pulls[0].Draft {
				t.Fatalf("killed at request %d (after it: %t), there are %d pull requests: %+v\n%s", n, after, len(pulls), pulls, text)
			}
			pushed := w.git(repository.Dir, "rev-parse", pulls[0].Head+"^{tree}")
			if n == 0 {
				want = pushed
			}
			here := pushed
			if moved {
				here = begin // the new base is not in the checkout
			}
			if got := w.git(repo, "rev-parse", "HEAD", "HEAD^{tree}"); pushed != want || !strings.Contains(got, here) {
				t.Fatalf("killed at request %d (after it: %t), the tree there is %s, not %s; here is %s", n, after, pushed, want, got)
			}
			if changed := w.git(repository.Dir, "diff", "--name-only", "main", pulls[0].Head); strings.Contains(changed, ".github") {
				t.Errorf("killed at request %d (after it: %t), the pull request has the base's own change:\n%s", n, after, changed)
			}
			must.Same(t, "?? untracked.txt", w.git(repo, "status", "--porcelain"), "killed at request", n, "after it", after, "the checkout has")
			if n > 0 && !killed {
				if n < 12 {
					t.Errorf("the run makes fewer than %d requests; those to GitHub are not among them", n)
				}
				return
			}
		}
	}
}

// moveBase puts a commit on the base that the checkout does not have.
func (w *killWorld) moveBase(repo, bare string) {
	w.t.Helper()
	w.git(repo, "checkout", "--quiet", "--detach")
	w.write(filepath.Join(repo, ".github/workflows/ci.yml"), "on: push\n")
	w.git(repo, "add", ".github")
	w.git(repo, "commit", "--quiet", "--message=moved")
	w.git(repo, "push", "--quiet", bare, "HEAD:refs/heads/main")
	w.git(repo, "checkout", "--quiet", "main")
}

// untilPublished runs until the end has the words published, with the first resume killed at the same request. A run
// that was killed before its agent began starts again.
func (w *killWorld) untilPublished(gate *deadly, n int, after bool, repo, out, published string, flags ...string) (text string, killed bool) {
	run := slices.Concat([]string{"run", "--repo", repo, "--publish", "github", "--quiet"}, flags, []string{"--out", out})
	text, ended := w.watched(gate.aimed(n, after), run...)
	for at := n; !ended; at = 0 {
		killed = true
		w.awaitEnd(out)
		if text, ended = w.watched(gate.aimed(at, after), "resume", out, "--quiet"); ended && strings.Contains(text, "before it") {
			w.git(repo, "checkout", "--quiet", "main")
			run[len(run)-1] += "-again"
			text, ended = w.watched(gate.aimed(0, after), run...)
		}
	}
	if !strings.Contains(text, published) && !strings.Contains(text, "it has ended") && !strings.Contains(text, "no_changes/already_published") {
		w.t.Fatalf("killed at request %d (after it: %t), the run ended in\n%s", n, after, text)
	}
	return text, killed
}

// awaitEnd waits until nobody works in a run directory. What started a run may be
// killed, and gone, a little before the run itself is.
func (w *killWorld) awaitEnd(out string) {
	w.t.Helper()
	dir, err := os.Open(filepath.Join(w.dir, out))
	if err != nil {
		return // it had not begun
	}
	defer dir.Close()
	must.Do(w.t, syscall.Flock(int(dir.Fd()), syscall.LOCK_EX))
}

// TestKilledByOwnCommands kills a run in each of the commands that it runs: setup,
// the checks on the base and on the change, and the agent's.
func TestKilledByOwnCommands(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	w.env = append(w.env, openly)
	repo := w.checkout("repo")
	kill := func(name string) string {
		return fmt.Sprintf("[ -e %[1]s/%[2]s ] || { touch %[1]s/%[2]s; kill -KILL $PPID; exec tail -f /dev/null; }", w.dir, name)
	}
	args := []string{
		"run", "--prompt", "x", "--repo", repo, "--out", "run", "--publish", "local", "--quiet",
		"--set", "setup=[{name: s, run: '" + kill("setup") + "'}]",
		"--set", "verify=[{name: first, run: test -f log.txt}, {name: second, run: '" + kill("base") + "; [ ! -e new ] || { " + kill("change") + "; }'}]",
	}
	deaths := 0
	text, ended := w.agent(0, args...)
	for ; !ended && deaths < 10; deaths++ {
		text, ended = w.agent(0, "resume", "run", "--quiet")
	}
	if !strings.Contains(text, "changed/committed") || deaths != 3 {
		t.Fatalf("after %d deaths the run ended in\n%s", deaths, text)
	}
	must.Same(t, "step 30", w.git(repo, "show", "HEAD:log.txt"), "log.txt has")
}

// TestKilledAfterTimeLimit kills a run while the work that its time ended is
// checked: what goes on with it has no time either, and still publishes the work.
func TestKilledAfterTimeLimit(t *testing.T) {
	w := newKillWorld(t)
	w.env = append(w.env, openly)
	var asked atomic.Int32
	w.gate.answer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 2 {
			stepwise(30).ServeHTTP(rw, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		<-r.Context().Done()
	}))
	repo := w.checkout("repo")
	kill := fmt.Sprintf("[ ! -e new ] || [ -e %[1]s/killed ] || { touch %[1]s/killed; kill -KILL $PPID; exec tail -f /dev/null; }", w.dir)
	text, ended := w.agent(0, "run", "--prompt", "x", "--repo", repo, "--out", "run", "--publish", "local", "--quiet",
		"--set", "limits.time=3s", "--set", "limits.on_budget=draft", "--set", "verify=[{name: v, run: '"+kill+"'}]")
	if ended {
		t.Fatalf("the run was not killed: %s", text)
	}
	text, _ = w.agent(0, "resume", "run", "--quiet", "--set", "limits.time=1s") // the last event told of less than it took
	if !strings.HasPrefix(text, "budget_exceeded/time: ") || !strings.Contains(text, "The change is commit ") {
		t.Fatalf("the run ended in\n%s", text)
	}
	if got := w.git(repo, "show", "HEAD:log.txt"); got != "step 2" || asked.Load() != 3 {
		t.Errorf("log.txt has %q after %d requests", got, asked.Load())
	}
}

// TestKilledWhileEnding stops a run and kills it while it keeps its work and
// gives the checkout back, as a CI service does that waits no longer.
func TestKilledWhileEnding(t *testing.T) {
	w := newKillWorld(t)
	undisturbed := w.checkout("undisturbed")
	if out, _ := w.agent(0, "run", "--prompt", "x", "--repo", undisturbed, "--out", "whole", "--publish", "local", "--quiet"); !strings.HasPrefix(out, "changed/committed") {
		t.Fatalf("the undisturbed run ended in %s", out)
	}
	want := w.git(undisturbed, "rev-parse", "HEAD^{tree}")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range max(4, kills()/5) {
		repo, out := w.checkout(fmt.Sprintf("repo%d", n)), fmt.Sprintf("run%d", n)
		text, _ := w.watched(w.stopped(2+random.IntN(28), 0), "run", "--prompt", "x", "--repo", repo, "--out", out, "--publish", "local", "--quiet")
		if !strings.HasPrefix(text, "cancelled/sigterm") {
			t.Fatalf("run %d was not stopped: %s", n, text)
		}
		for rounds := 0; !strings.Contains(text, "changed/committed") && !strings.Contains(text, "it has ended"); rounds++ {
			at := 1 + random.IntN(4)
			if rounds >= 4 {
				at = 0
			}
			text, _ = w.watched(w.stopped(at, time.Duration(1+random.Int64N(int64(60*time.Millisecond)))), "resume", out, "--quiet")
			if rounds > 8 || strings.Contains(text, "stuck_loop") || strings.Contains(text, "uncommitted changes") || strings.Contains(text, "internal_error") {
				t.Fatalf("run %d: %s", n, text)
			}
		}
		if got := w.git(repo, "rev-parse", "HEAD^{tree}"); got != want {
			t.Fatalf("run %d made another tree: %s\n%s", n, text, w.git(repo, "log", "--all", "--decorate", "--format=%h %d %T"))
		}
		if text, ok := w.agent(0, "report", out, "--verify"); !ok || !strings.Contains(text, "the chain is whole") {
			t.Errorf("run %d: %s", n, text)
		}
		if raw, err := os.ReadFile(filepath.Join(w.dir, out, "result.json")); err != nil || !strings.Contains(string(raw), `"outcome": "changed"`) {
			t.Errorf("run %d left %v %s", n, err, raw)
		}
	}
}

// forgeThatStops answers as forge does, but for the first request of a program that posts where at says:
// then the program is stopped, and nobody answers.
func (w *killWorld) forgeThatStops(forge *forgetest.Forge, program *atomic.Pointer[os.Process], at func() string, stop func(*os.Process)) (repository *forgetest.Repository, repo string) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p := program.Load()
		if p == nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, at()) || !program.CompareAndSwap(p, nil) {
			forge.ServeHTTP(rw, r)
			return
		}
		stop(p)
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		<-r.Context().Done()
	}))
	w.t.Cleanup(server.Close)
	w.env = append(w.env, "GITHUB_API_URL="+server.URL+strings.TrimPrefix(forge.APIURL, forge.URL), "GITHUB_SERVER_URL="+server.URL, "GITHUB_TOKEN="+forge.Token)
	return w.forgeCheckout(forge, server.URL, "widgets")
}

// TestKilledAfterRecordedEnd stops a run that has pushed its commit before it opens the pull
// request, and leaves it as a kill does that comes after its result is written and before its working
// files are removed: these are put back as they were when it was stopped.
func TestKilledAfterRecordedEnd(t *testing.T) {
	t.Parallel()
	w, forge := newKillWorld(t), forgetest.New(t, forgetest.Options{})
	state, before := filepath.Join(w.dir, "run", record.StateFolder), filepath.Join(w.dir, "before")
	var program atomic.Pointer[os.Process]
	repository, repo := w.forgeThatStops(forge, &program, func() string { return "/pulls" }, func(p *os.Process) {
		must.Is(t, nil, errors.Join(os.CopyFS(before, os.DirFS(state)), p.Signal(syscall.SIGTERM)))
	})
	w.gate.answer(stepwise(3))
	text, _ := w.watched(keptIn(&program), "run", "--prompt", "x", "--repo", repo, "--publish", "github", "--quiet", "--out", "run")
	if !strings.HasPrefix(text, "cancelled/sigterm") || !strings.Contains(text, "pushed to") {
		t.Fatalf("the run was not stopped after its push: %s", text)
	}
	must.Do(t, errors.Join(os.RemoveAll(state), os.CopyFS(state, os.DirFS(before))))
	w.opensOne(repository, repo)
}

// keptIn has a program that is watched be known.
func keptIn(program *atomic.Pointer[os.Process]) func(*os.Process) func() {
	return func(p *os.Process) func() {
		program.Store(p)
		return func() {}
	}
}

// opensOne goes on with the run, which then has one pull request and a clean checkout.
func (w *killWorld) opensOne(repository *forgetest.Repository, repo string) {
	w.t.Helper()
	text, _ := w.agent(0, "resume", "run", "--quiet")
	if pulls := repository.PullRequests(); len(pulls) != 1 {
		w.t.Errorf("there are %d pull requests: %s", len(pulls), text)
	}
	must.Same(w.t, "?? untracked.txt", w.git(repo, "status", "--porcelain"))
}

// TestRepeatedlyStoppedAfterPush stops a run that has pushed its commit, and those that go on with
// it, at one request after the other. The last one finds its commit on the branch, puts the checkout
// back where it stood when it went on, and is killed.
func TestRepeatedlyStoppedAfterPush(t *testing.T) {
	t.Parallel()
	w, forge := newKillWorld(t), forgetest.New(t, forgetest.Options{})
	var program atomic.Pointer[os.Process]
	var at string
	by := syscall.SIGTERM
	repository, repo := w.forgeThatStops(forge, &program, func() string { return at }, func(p *os.Process) {
		must.Is(t, nil, p.Signal(by))
	})
	w.gate.answer(stepwise(3))
	args := []string{"run", "--prompt", "x", "--repo", repo, "--publish", "github", "--quiet", "--out", "run"}
	for i, place := range []string{"/pulls", "/pulls", "/git-receive-pack", "/pulls"} {
		if at = place; i == 3 {
			by = syscall.SIGKILL
		}
		text, _ := w.watched(keptIn(&program), args...)
		if told := strings.HasPrefix(text, "cancelled/sigterm"); told != (by == syscall.SIGTERM) || program.Load() != nil {
			t.Fatalf("it was not stopped by %v at %s: %s", by, at, text)
		}
		args = []string{"resume", "run", "--quiet"}
	}
	w.opensOne(repository, repo)
}

// stopped sends SIGTERM at a request and SIGKILL so much later, if at all.
func (w *killWorld) stopped(at int, kill time.Duration) func(*os.Process) func() {
	return func(program *os.Process) func() {
		w.gate.plan(program, at, func(program *os.Process) {
			_ = program.Signal(syscall.SIGTERM)
			if kill > 0 {
				time.AfterFunc(kill, func() { _ = program.Kill() })
			}
		})
		return func() {}
	}
}

// TestKilledAtEachRequestOfAnUpdate kills the run that makes a red draft green
// with another change, and what goes on with it.
func TestKilledAtEachRequestOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newKillWorld(t)
	forge := forgetest.New(t, forgetest.Options{})
	gate, steps := new(deadly), stepwise(0)
	address := w.throughGate(gate, forge, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { steps.ServeHTTP(rw, r) }))
	for n := 8; ; n += every(4) {
		name := fmt.Sprintf("widgets-%d", n)
		repository, repo := w.forgeCheckout(forge, address, name)
		first := []string{"run", "--prompt", "x", "--repo", repo, "--publish", "github", "--quiet", "--set", "pull_request.labels=[bot]", "--set", "verify=[{name: t, run: test -f new/2/a.txt, must: pass}]", "--set", "verify_attempts=0"}
		steps = 2
		gate.aim(nil, 0, false)
		if text, _ := w.agent(0, slices.Concat(first, []string{"--out", "red-" + name})...); !strings.Contains(text, "verify_failed/red") {
			t.Fatalf("the first run ended in %s", text)
		}
		repository.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Labels = []string{"mine"} }) // a person's edit
		w.git(repo, "checkout", "--quiet", "main")
		steps = 3
		second := slices.Concat(first, []string{"--out", "green-" + name})
		text, ended := w.watched(gate.aimed(n, n%2 == 0), second...)
		whole := ended
		for at := n; !ended; at = 0 {
			text, ended = w.watched(gate.aimed(at, n%2 == 0), "resume", "green-"+name, "--quiet")
		}
		if strings.Contains(text, "it was stopped before it had begun") {
			continue
		}
		pulls := repository.PullRequests()
		if len(pulls) != 1 || pulls[0].Draft || !slices.Equal(pulls[0].Labels, []string{"mine"}) {
			t.Fatalf("killed at request %d, there are %+v\n%s", n, pulls, text)
		}
		head := w.git(repository.Dir, "rev-parse", pulls[0].Head)
		if !strings.Contains(pulls[0].Body, "commit "+head+" -->") || strings.Contains(pulls[0].Body, "do not merge") {
			t.Fatalf("killed at request %d, the body of %s is\n%s", n, head, pulls[0].Body)
		}
		if whole {
			return
		}
	}
}
