package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

// program is a run of the program against a scripted server.
type program struct {
	dir     string // the checkout
	session string
	job     string // path of its job file; empty for a prompt
	args    []string
	out     string // the run directory; empty for one that is made
	env     []string
	codex   string          // its home where Codex runs the session instead, in dir and with args
	held    <-chan struct{} // holds answers back until it is closed; nil for none
}

// sighting is what was seen of a run.
type sighting struct {
	Wall   time.Duration `json:"wall"`   // from start to exit
	Memory int64         `json:"memory"` // peak, in bytes
	CPU    time.Duration `json:"cpu"`    // of the processor, in the program and what it waited for
	Status int           `json:"status"`

	start     time.Duration // from start to the first request
	server    time.Duration // of Wall, spent in the scripted server
	asking    time.Duration // from the first request to the last answer
	committed time.Duration // from the last answer to the end of the run
	requests  []modeltest.Request
	between   map[string]time.Duration // median from an event to the next: "model.request tool.started"
}

func (s sighting) total() time.Duration  { return s.Wall }
func (s sighting) cpu() time.Duration    { return s.CPU }
func (s sighting) began() time.Duration  { return s.start }
func (s sighting) served() time.Duration { return s.server }

func (s sighting) askedFor() time.Duration    { return s.asking }
func (s sighting) committedIn() time.Duration { return s.committed }

// The parts of a turn with one command.
func (s sighting) requestOfTurn() time.Duration { return s.between["model.request model.response"] }
func (s sighting) admission() time.Duration     { return s.between["model.response tool.started"] }
func (s sighting) commandOfTurn() time.Duration { return s.between["tool.started tool.finished"] }
func (s sighting) preparation() time.Duration   { return s.between["tool.finished model.request"] }

// underway is a run that goes on.
type underway struct {
	server *modeltest.Server
	began  time.Time
	first  time.Duration // from then to the first request, once asked is closed
	asked  chan struct{}
	spent  atomic.Int64 // nanoseconds in the server
	out    string
	watch  *exec.Cmd
	answer bytes.Buffer
	said   bytes.Buffer
}

func (p program) run(b *testing.B) sighting {
	b.Helper()
	return p.start(b).end(b)
}

func (p program) times(b *testing.B, n int) (seen []sighting) {
	b.Helper()
	for range n {
		seen = append(seen, p.run(b))
	}
	return seen
}

func (p program) start(b *testing.B) *underway {
	b.Helper()
	if _, err := os.Stat(*binary); err != nil {
		b.Skipf("there is no program to measure (%v); make bench builds it", err)
	}
	u := &underway{server: startServer(b, p.session), out: p.out, asked: make(chan struct{})}
	b.Cleanup(u.server.Close)
	u.server.Config.Handler = u.noted(p.held, timed(u.server.Config.Handler, &u.spent))
	if u.out == "" && p.codex == "" {
		u.out = filepath.Join(b.TempDir(), "run")
	}
	u.watch = p.watched(b, u)
	u.watch.Stdout, u.watch.Stderr = &u.answer, &u.said
	u.began = time.Now()
	must.Do(b, u.watch.Start())
	return u
}

// noted notes when the first request came, and holds requests back.
func (u *underway) noted(held <-chan struct{}, next http.Handler) http.Handler {
	var once sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			u.first = time.Since(u.began)
			close(u.asked)
		})
		if held != nil {
			<-held
		}
		next.ServeHTTP(w, r)
	})
}

// end waits for the end of a run. The sighting of a Codex without working commands is zero.
func (u *underway) end(b *testing.B) sighting {
	b.Helper()
	must.Do(b, u.watch.Wait(), "watch", u.said.Bytes())
	u.server.Close()
	var seen sighting
	must.Do(b, json.Unmarshal(u.answer.Bytes(), &seen))
	if seen.Status != 0 {
		b.Fatalf("the run ended with status %d:\n%s", seen.Status, u.said.Bytes())
	}
	if faults := u.server.Faults(); len(faults) > 0 {
		b.Fatalf("the scripted server complains: %q", faults)
	}
	seen.start, seen.server = u.first, time.Duration(u.spent.Load())
	seen.requests = u.server.Requests()
	if u.out != "" {
		seen.addTimes(b, filepath.Join(u.out, "transcript.jsonl"))
	} else if commandsFailed(seen.requests) {
		return sighting{}
	}
	return seen
}

func startServer(b *testing.B, session string) *modeltest.Server {
	b.Helper()
	return must.Get(modeltest.StartScript("session", strings.NewReader(session), modeltest.Options{Trusting: true, Compacts: true}))(b)
}

// timed adds up how long next takes.
func timed(next http.Handler, spent *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		next.ServeHTTP(w, r)
		spent.Add(int64(time.Since(began)))
	})
}

// watchVariable makes this test binary watch a program instead of testing.
const watchVariable = "BENCH_WATCH"

// watched runs the program below a process of its own. Linux counts to a
// process's peak what the one that started it held at that moment, and this one
// holds the server and its descriptions.
func (p program) watched(b *testing.B, u *underway) *exec.Cmd {
	b.Helper()
	args, env := p.command(b, u.server.BaseURL(), u.out)
	if p.codex != "" {
		args, env = p.codexCommand(u.server.URL, u.server.BaseURL())
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0], args...)
	cmd.Env = slices.Concat(gitEnvironment(), []string{watchVariable + "=1"}, env, p.env)
	return cmd
}

func (p program) command(b *testing.B, baseURL, out string) (args, env []string) {
	b.Helper()
	path := must.Get(filepath.Abs(*binary))(b)
	task := []string{"--prompt", "Measure."}
	if p.job != "" {
		task = []string{p.job}
	}
	return slices.Concat([]string{path, "run", "--quiet"}, task, []string{"--repo", p.dir, "--out", out}, p.args),
		[]string{"HOME=" + b.TempDir(), "PATH=" + os.Getenv("PATH"), "OPENAI_BASE_URL=" + baseURL, "OPENAI_API_KEY=a-key-for-the-scripted-server"}
}

// watch runs args and writes what it saw to standard output.
func watch(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, watchVariable+"=") })
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	began := time.Now()
	_ = cmd.Run() // the status tells
	seen := sighting{Wall: time.Since(began), Status: -1}
	if cmd.ProcessState != nil {
		seen.Status = cmd.ProcessState.ExitCode()
		seen.Memory = peak(cmd.ProcessState)
		seen.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		return 1
	}
	return 0
}

// peak is the highest resident memory of an ended process, or of a child that
// it waited for where that is higher: getrusage(2).
func peak(state *os.ProcessState) int64 {
	usage, known := state.SysUsage().(*syscall.Rusage)
	switch {
	case !known:
		return 0
	case runtime.GOOS == "darwin":
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}

// addTimes reads a transcript: asking, committed and between.
func (s *sighting) addTimes(b *testing.B, transcript string) {
	b.Helper()
	file := must.Get(os.Open(transcript))(b)
	defer file.Close()
	var asked, answered time.Time
	var last struct {
		Type string    `json:"type"`
		Time time.Time `json:"time"`
	}
	between := map[string][]time.Duration{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		before := last
		must.Do(b, json.Unmarshal(lines.Bytes(), &last))
		between[before.Type+" "+last.Type] = append(between[before.Type+" "+last.Type], last.Time.Sub(before.Time))
		switch {
		case last.Type == "model.response":
			answered = last.Time
		case last.Type == "model.request" && asked.IsZero():
			asked = last.Time
		}
	}
	if err := lines.Err(); err != nil || answered.IsZero() {
		b.Fatalf("no answer in %s: %v", transcript, err)
	}
	s.asking, s.committed = answered.Sub(asked), last.Time.Sub(answered)
	s.between = make(map[string]time.Duration, len(between))
	for events, took := range between {
		s.between[events] = medianOf(took)
	}
}
