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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/model/modeltest"
)

// program is a run of the program against a scripted server.
type program struct {
	dir     string // the checkout
	session string
	args    []string
}

// sighting is what was seen of a run.
type sighting struct {
	Wall   time.Duration `json:"wall"`   // from start to exit
	Memory int64         `json:"memory"` // peak, in bytes
	Status int           `json:"status"`

	server    time.Duration // of Wall, spent in the scripted server
	committed time.Duration // from the last answer to the end of the run
}

func (s sighting) total() time.Duration  { return s.Wall }
func (s sighting) served() time.Duration { return s.server }

func (p program) run(b *testing.B) sighting {
	b.Helper()
	if _, err := os.Stat(*binary); err != nil {
		b.Skipf("there is no program to measure (%v); make bench builds it", err)
	}
	server, err := modeltest.StartScript("session", strings.NewReader(p.session), modeltest.Options{Trusting: true, Compacts: true})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	var spent atomic.Int64
	server.Config.Handler = timed(server.Config.Handler, &spent)
	out := filepath.Join(b.TempDir(), "run")
	seen := p.watched(b, server.BaseURL(), out)
	if faults := server.Faults(); len(faults) > 0 {
		b.Fatalf("the scripted server complains: %q", faults)
	}
	seen.server = time.Duration(spent.Load())
	seen.committed = afterLastAnswer(b, filepath.Join(out, "transcript.jsonl"))
	return seen
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
func (p program) watched(b *testing.B, baseURL, out string) sighting {
	b.Helper()
	path, err := filepath.Abs(*binary)
	if err != nil {
		b.Fatal(err)
	}
	args := append([]string{path, "run", "--quiet", "--prompt", "Measure.", "--repo", p.dir, "--out", out}, p.args...)
	cmd := exec.CommandContext(b.Context(), os.Args[0], args...)
	cmd.Env = append(gitEnvironment(), watchVariable+"=1", "HOME="+b.TempDir(), "PATH="+os.Getenv("PATH"),
		"OPENAI_BASE_URL="+baseURL, "OPENAI_API_KEY=a-key-for-the-scripted-server")
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := cmd.Output()
	if err != nil {
		b.Fatalf("watch: %v\n%s", err, said.Bytes())
	}
	var seen sighting
	if err := json.Unmarshal(answer, &seen); err != nil {
		b.Fatal(err)
	}
	if seen.Status != 0 {
		b.Fatalf("the run ended with status %d:\n%s", seen.Status, said.Bytes())
	}
	return seen
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

// afterLastAnswer is the time from the model's last answer to the end of a run.
func afterLastAnswer(b *testing.B, transcript string) time.Duration {
	b.Helper()
	file, err := os.Open(transcript)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var answered, ended time.Time
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct {
			Type string    `json:"type"`
			Time time.Time `json:"time"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			b.Fatal(err)
		}
		if event.Type == "model.response" {
			answered = event.Time
		}
		ended = event.Time
	}
	if err := lines.Err(); err != nil || answered.IsZero() {
		b.Fatalf("no answer in %s: %v", transcript, err)
	}
	return ended.Sub(answered)
}
