package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// stepwise is a model that does so many things, one in a turn. It knows from the
// conversation alone what is done, and repeats a call that was broken off when
// the runner tells it so.
type stepwise int

func (steps stepwise) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	items, err := inputOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	done, tries, again := stepsDone(items)
	steps.answer(w, done, tries, again, 10)
}

// inputItem is what is looked at of an item of the conversation.
type inputItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Output    string `json:"output"`
	Encrypted string `json:"encrypted_content"` // of a compaction
}

func inputOf(r *http.Request) ([]inputItem, error) {
	var body struct {
		Input []inputItem `json:"input"`
	}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	return body.Input, err
}

// stepsDone is how many steps are done, how many calls that took, and whether the last call was one for the next
// step, which was broken off.
func stepsDone(items []inputItem) (done, tries int, again bool) {
	for _, item := range items {
		if item.Type == "compaction" {
			_, _ = fmt.Sscanf(item.Encrypted, "%d %d", &done, &tries)
		}
		if !strings.HasSuffix(item.Type, "_call_output") {
			continue
		}
		tries++
		succeeded := strings.Contains(item.Output, "Exit code: 0") || strings.Contains(item.Output, "exited with code 0")
		step, _, _ := strings.Cut(strings.TrimPrefix(item.CallID, "step_"), "_")
		if again = step == strconv.Itoa(done) && !succeeded; step == strconv.Itoa(done) && succeeded {
			done++
		}
	}
	return done, tries, again
}

func (steps stepwise) answer(w http.ResponseWriter, done, tries int, again bool, tokens int) {
	item := says("Done.")
	if done < int(steps) {
		item = step(done, tries, again)
	}
	respond(w, tokens, item)
}

// respond answers a request of the Responses API with items.
func respond(w http.ResponseWriter, inputTokens int, output ...any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "resp_1", "object": "response", "status": "completed", "output": output,
		"usage": map[string]any{"input_tokens": inputTokens, "output_tokens": 1},
	})
}

// step is an idempotent command or a patch. A patch that was broken off may have changed some of its files, so
// that again is a command for all of them, whatever they are.
func step(n, try int, again bool) any {
	id := fmt.Sprintf("step_%d_%d", n, try)
	if n%2 == 1 || again {
		text := fmt.Sprintf("echo command %d > command-%d.txt", n, n)
		if n%2 == 0 {
			text = fmt.Sprintf("mkdir -p new/%d && echo a %d >new/%d/a.txt && echo b >new/%d/b.txt && test -s log.txt && echo step %d >log.txt", n, n, n, n, n+2)
		}
		return asksToRun(id, text)
	}
	patch := fmt.Sprintf("*** Begin Patch\n*** Add File: new/%d/a.txt\n+a %d\n*** Update File: log.txt\n@@\n-step %d\n+step %d\n*** Add File: new/%d/b.txt\n+b\n*** End Patch", n, n, n, n+2, n)
	return map[string]any{"type": "custom_tool_call", "id": "ctc_" + id, "call_id": id, "name": "apply_patch", "input": patch}
}

// killWorld is a repository and a model for runs that are killed.
type killWorld struct {
	workshop
	gate   *deadly  // in front of the model
	within []string // what agent-ci is started by, if not by the test itself
}

func newKillWorld(t *testing.T) *killWorld {
	t.Helper()
	gate := &deadly{next: stepwise(30)}
	server := httptest.NewServer(gate)
	t.Cleanup(server.Close)
	return &killWorld{gate: gate, workshop: newWorkshop(t,
		"OPENAI_BASE_URL="+server.URL+"/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef", "AGENT_CI_MODEL_STREAM=false",
	)}
}

// checkout makes a repository with something untracked in it.
func (w *killWorld) checkout(name string) string {
	w.t.Helper()
	repo := filepath.Join(w.dir, name)
	for file, text := range map[string]string{"log.txt": "step 0\n", ".gitignore": "*.o\n"} {
		w.write(filepath.Join(repo, file), text)
	}
	w.repository(repo)
	w.write(filepath.Join(repo, "untracked.txt"), "mine\n")
	return repo
}

// agent runs agent-ci and kills it after a while, unless that is 0. It gives
// the output and whether the program ended by itself.
func (w *killWorld) agent(after time.Duration, args ...string) (string, bool) {
	w.t.Helper()
	return w.watched(func(program *os.Process) func() {
		if after == 0 {
			return func() {}
		}
		timer := time.AfterFunc(after, func() { _ = program.Kill() })
		return func() { timer.Stop() }
	}, args...)
}

// watched runs agent-ci beside what watch begins, and ends that with it.
func (w *killWorld) watched(watch func(program *os.Process) (stop func()), args ...string) (string, bool) {
	w.t.Helper()
	return w.read(io.Discard, watch, args...)
}

// read is watched with a reader of what agent-ci prints on standard output.
func (w *killWorld) read(by io.Writer, watch func(program *os.Process) (stop func()), args ...string) (string, bool) {
	w.t.Helper()
	argv := append(append(w.within[:len(w.within):len(w.within)], binary), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = w.env, w.dir
	var out strings.Builder
	both := io.MultiWriter(&out, by)
	cmd.Stdout, cmd.Stderr = both, both
	must.Do(w.t, cmd.Start())
	defer watch(cmd.Process)()
	err := cmd.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && !status.Signaled() {
		return out.String(), true
	}
	return out.String(), err == nil
}

// kills is how many times the test kills the program: 100 with AGENT_CI_KILLS=100.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("AGENT_CI_KILLS")); err == nil {
		return n
	}
	if testing.Short() {
		return 4
	}
	return 6
}

// every returns by how many steps a test goes on: 1 with AGENT_CI_KILLS=100, else n.
func every(n int) int {
	if kills() < 100 {
		return n
	}
	return 1
}

// spread are times within a run, drawn at random and spread evenly over it: few
// of them hit every part of it too (the additive recurrence of the golden ratio).
type spread struct {
	within time.Duration
	at     float64 // the last one, as a share of it
}

func (s *spread) next() time.Duration {
	_, s.at = math.Modf(s.at + math.Phi)
	return time.Duration(s.at * float64(s.within))
}

// TestKilledRunsResume kills runs, and what goes on with them, at random moments, until
// a fifth of the kills hit a run that is at work and goes on after it.
func TestKilledRunsResume(t *testing.T) {
	w := newKillWorld(t)
	arguments := func(repo, out string) []string {
		return []string{"run", "--prompt", "x", "--repo", repo, "--out", out, "--publish", "local", "--quiet", "--set", "verify=[{name: t, run: test -f log.txt}]"}
	}
	took, undisturbed := w.undisturbed(arguments)
	want := w.git(undisturbed, "rev-parse", "HEAD^{tree}")

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, a run takes %s", seed, took)
	random := rand.New(rand.NewPCG(seed, 0))
	first, later := spread{took, random.Float64()}, spread{took, random.Float64()}
	killed, resumed := 0, 0
	for n := 0; killed < kills() || 5*resumed < killed; n++ {
		if n > 3*kills()+20 {
			t.Fatalf("%d of %d kills hit a run that was at work and went on, and a fifth must", resumed, killed)
		}
		repo, out := w.checkout(fmt.Sprintf("repo%d", n)), fmt.Sprintf("run%d", n)
		text, ended := w.agent(first.next(), arguments(repo, out)...)
		for rounds := 0; !ended; rounds++ {
			killed++
			wait := later.next()
			if rounds >= 5 {
				wait = 0
			}
			if text, ended = w.agent(wait, "resume", out, "--quiet"); !ended {
				continue
			}
			if strings.Contains(text, "before it had begun") || strings.Contains(text, "has no transcript") || strings.Contains(text, "is not a run directory") {
				w.git(repo, "checkout", "--quiet", "main")
				out += "again"
				text, ended = w.agent(wait, arguments(repo, out)...)
			}
		}
		if strings.Contains(text, "it has ended") { // killed when all was done
			raw := read(t, filepath.Join(w.dir, out, "result.json"))
			text = strings.ReplaceAll(raw, `"outcome": "changed",
  "reason": "committed"`, "changed/committed")
		}
		if !strings.Contains(text, "changed/committed") {
			t.Fatalf("run %d ended in\n%s", n, text)
		}
		w.asUndisturbed(n, repo, out, want)
		resumed += w.resumptions(out)
	}
	t.Logf("killed %d times, of which %d hit a run at work that went on", killed, resumed)
}

// undisturbed runs to the end, in a checkout of its own each time. It gives how
// long a run takes once files and programs are in memory, and a checkout.
func (w *killWorld) undisturbed(arguments func(repo, out string) []string) (took time.Duration, repo string) {
	w.t.Helper()
	for n := range 3 {
		repo = w.checkout(fmt.Sprintf("undisturbed%d", n))
		began := time.Now()
		if out, _ := w.agent(0, arguments(repo, fmt.Sprintf("whole%d", n))...); !strings.HasPrefix(out, "changed/committed") {
			w.t.Fatalf("an undisturbed run ended in %s", out)
		}
		if now := time.Since(began); n == 0 || now < took {
			took = now
		}
	}
	return took, repo
}

// asUndisturbed checks what a run that was killed has left.
func (w *killWorld) asUndisturbed(n int, repo, out, tree string) {
	w.t.Helper()
	if got := w.git(repo, "rev-parse", "HEAD^{tree}"); got != tree {
		w.t.Fatalf("run %d made another tree:\n%s", n, w.git(repo, "show", "--format=", "HEAD"))
	}
	must.Same(w.t, "?? untracked.txt", w.git(repo, "status", "--porcelain"), "left by run", n)
	if text, ok := w.agent(0, "report", out, "--verify"); !ok || !strings.Contains(text, "the chain is whole") {
		w.t.Errorf("run %d: %s", n, text)
	}
	if text, ok := w.agent(0, "replay", out, "--frozen", "--quiet"); !ok || !strings.Contains(text, tree) || !strings.Contains(text, ", 0 differences") {
		w.t.Errorf("run %d: %s", n, text)
	}
}

// resumptions is how often a run went on after a kill.
func (w *killWorld) resumptions(out string) int {
	w.t.Helper()
	log := read(w.t, filepath.Join(w.dir, out, "transcript.jsonl"))
	return strings.Count(log, `"type":"run.resumed"`)
}
