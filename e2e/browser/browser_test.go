package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	binary = flag.String("binary", "", "the agent-ci to test; built when empty")
	shots  = flag.String("shots", "", "folder for screenshots and the printed page; none when empty")
)

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "agent-ci-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if *binary == "" {
		*binary = filepath.Join(dir, "agent-ci")
		build := exec.Command("go", "build", "-C", "../..", "-o", *binary, "./cmd/agent-ci")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build agent-ci: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// report makes the page of a transcript and gives its path.
func report(t *testing.T, log []byte) string {
	t.Helper()
	dir := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(dir, "transcript.jsonl"), log, 0o600))
	cmd := exec.Command(*binary, "report", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("agent-ci report: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// fixture is a transcript that the tests of the package report know too.
func fixture(t *testing.T, name string) []byte {
	t.Helper()
	raw := mustGet(os.ReadFile("../../runner/record/transcript/report/testdata/" + name + ".jsonl"))(t)
	return raw
}

// chromium starts a browser for a test. It asks nothing of any network itself.
func chromium(t *testing.T) context.Context {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
	}
	for _, off := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(off, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser is gone
		cancel()
	})
	do(t, ctx)                                 // starts the browser, which lives as long as the context of its first use
	if end, limited := t.Deadline(); limited { // a browser that hangs fails its test, and leaves time to end it
		limited, late := context.WithDeadline(ctx, end.Add(-time.Until(end)/10))
		t.Cleanup(late)
		return limited
	}
	return ctx
}

// screen is what a page is shown on.
type screen struct {
	name          string
	width, height int64
	dark          bool
}

var screens = []screen{
	{"phone-light", 390, 844, false},
	{"phone-dark", 390, 844, true},
	{"desktop-light", 1280, 900, false},
	{"desktop-dark", 1280, 900, true},
}

func (s screen) set(t *testing.T, ctx context.Context) {
	t.Helper()
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	do(t, ctx, chromedp.EmulateViewport(s.width, s.height))
	command(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// witness keeps what a page does that it should not do.
type witness struct {
	mu       sync.Mutex
	seen     []string
	requests int // the page's own among them
}

// watch starts to look at the browser's events.
func watch(t *testing.T, ctx context.Context, path string) *witness {
	t.Helper()
	w := &witness{}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			w.add("the console was told: " + string(e.Type))
		case *runtime.EventExceptionThrown:
			w.add("exception: " + e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			w.add("log: " + e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			w.add("dialog: " + e.Message)
		case *network.EventRequestWillBeSent:
			w.count()
			if e.Request.URL != "file://"+path {
				w.add("request: " + e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *witness) add(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, what)
}

func (w *witness) count() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
}

func (w *witness) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests == 0 {
		t.Error("not even the request of the page was seen")
	}
	for _, what := range w.seen {
		t.Errorf("%s", what)
	}
}

// open shows a page. What it does that it should not do fails the test at its end.
func open(t *testing.T, path string, s screen) context.Context {
	t.Helper()
	ctx := chromium(t)
	w := watch(t, ctx, path)
	command(t, ctx, network.Enable, network.EnableParams{})
	command(t, ctx, log.Enable, cdp.Empty{})
	s.set(t, ctx)
	do(t, ctx, chromedp.Navigate("file://"+path))
	t.Cleanup(func() { w.check(t) })
	return ctx
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	mustDo(t, chromedp.Do(ctx, steps...))
}

// get is do for what has a value.
func get[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	value := mustGet(chromedp.Run(ctx, action))(t)
	return value
}

// command sends one command of the protocol.
func command[P, R any](t *testing.T, ctx context.Context, c cdp.Command[P, R], params P) {
	t.Helper()
	mustGet(chromedp.Call(ctx, c, params))(t)
}

// ask evaluates an expression in the page.
func ask[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	answer, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return answer
}

// keep writes what the browser showed where -shots says.
func keep(t *testing.T, name string, content []byte) {
	t.Helper()
	if *shots == "" {
		return
	}
	mustDo(t, os.MkdirAll(*shots, 0o755))
	mustDo(t, os.WriteFile(filepath.Join(*shots, name), content, 0o644))
}

// mustDo ends the test at an error.
func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustGet returns the value of a call. It ends the test if the call failed.
func mustGet[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		mustDo(t, err)
		return value
	}
}

// mustBe reports a value that is not want. The test continues.
func mustBe[T comparable](t *testing.T, want, got T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}
