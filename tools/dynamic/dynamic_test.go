package dynamic_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dynamic"
)

// TestMain runs as one of the programs below where its first argument names it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if program, is := programs[os.Args[1]]; is {
			os.Exit(program())
		}
	}
	os.Exit(m.Run())
}

// hang never returns. An empty select would end a program without cgo as a deadlock.
func hang() int {
	for {
		time.Sleep(time.Hour)
	}
}

// programs answer calls.
var programs = map[string]func() int{
	"echo":     func() int { _, _ = io.Copy(os.Stdout, os.Stdin); return 0 },
	"silent":   func() int { return 0 },
	"fails":    func() int { fmt.Println("half"); fmt.Fprintln(os.Stderr, "no such word"); return 3 },
	"grumbles": func() int { fmt.Println("fine"); fmt.Fprintln(os.Stderr, "but slow"); return 0 },
	"hangs":    func() int { fmt.Fprintln(os.Stderr, "waiting"); return hang() },
	"floods": func() int {
		fmt.Print(strings.Repeat("a line of output\n", 200_000))
		return 0
	},
	"floodslist": func() int { fmt.Print("[" + strings.Repeat("\"a long list of text\",", 1<<20)); return 0 },
	"leaves": func() int { // a process that holds the output and goes on
		c := exec.Command("sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return 1
		}
		fmt.Println("left one")
		return 0
	},
	"items":  func() int { fmt.Print(os.Getenv("ITEMS")); return 0 },
	"server": server,
	"greets": func() int { fmt.Println(`{"ready": true}`); return server() },
	"answers": func() int { // whatever it is asked, in a form of its own
		lines := bufio.NewScanner(os.Stdin)
		for n := 1; lines.Scan(); n++ {
			fmt.Printf("{\"call_id\":\"call_%d\",%s}\n", n, os.Getenv("ANSWER"))
		}
		return 0
	},
	"turnsmute": func() int {
		if err := os.Stdout.Close(); err != nil {
			return 1
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		return hang()
	},
}

// server answers calls by what they ask for.
func server() int {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 32<<20)
	for n := 1; lines.Scan(); n++ {
		var call struct {
			CallID    string `json:"call_id"`
			TurnID    string `json:"turn_id"`
			Tool      string
			Arguments struct{ Do, Say string }
		}
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return 9
		}
		say := func(id, text string, success bool) {
			raw, _ := json.Marshal(map[string]any{"call_id": id, "content_items": []any{map[string]string{"type": "input_text", "text": text}}, "success": success})
			fmt.Println(string(raw))
		}
		switch call.Arguments.Do {
		case "die":
			fmt.Fprintln(os.Stderr, "dying")
			return 4
		case "hang":
			hang()
		case "fail":
			say(call.CallID, "it can't be done", false)
		case "late": // and for calls that nobody made
			say("nobody", "for nobody", true)
			fmt.Println("no JSON")
			fmt.Println("null")
			fmt.Println(`{"call_id": 7}`)
			say(call.CallID, "at last", true)
			say(call.CallID, "once more", true)
		case "ahead": // for the next call
			say(fmt.Sprintf("call_%d", n+1), "a lie", true)
			say(call.CallID, "ahead", true)
		case "flood":
			fmt.Println(strings.Repeat("x", 40<<20))
		case "empty":
			fmt.Printf("{\"call_id\":%q}\n", call.CallID)
		case "answer and die":
			say(call.CallID, "my last", true)
			return 0
		case "deaf":
			say(call.CallID, "heard", true)
		default:
			say(call.CallID, fmt.Sprintf("%d %s %s %s %s", n, call.Tool, call.CallID, call.TurnID, call.Arguments.Say), true)
		}
	}
	return 0
}

func program(t *testing.T, name string, env ...string) dynamic.Program {
	t.Helper()
	box := new(sandbox.Sandbox)
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return dynamic.Program{Sandbox: box, Argv: []string{self, name}, Dir: t.TempDir(), Env: append(env, "PATH="+os.Getenv("PATH"))}
}

var spec = tools.Spec{Name: "lookup", Description: "x", Parameters: json.RawMessage(`{"type":"object"}`)}

// memory keeps whole outputs.
type memory struct{ files map[string]*bytes.Buffer }

type file struct{ *bytes.Buffer }

func (file) Close() error { return nil }

func (m *memory) create(name string) (io.WriteCloser, string, error) {
	m.files[name] = new(bytes.Buffer)
	return file{m.files[name]}, "/run/" + name, nil
}

func dispatch(t *testing.T, outputs *tools.Outputs, tool tools.Tool, inputs ...string) []tools.Result {
	t.Helper()
	d := tools.Dispatcher{Registry: tools.New(tool), Outputs: outputs}
	var calls []tools.Call
	for i, input := range inputs {
		calls = append(calls, tools.Call{ID: fmt.Sprintf("call_%d", i+1), Turn: 7, Name: spec.Name, Input: input})
	}
	return d.Dispatch(t.Context(), calls)
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, input string
		failed         bool
		want           string
		detail         string
	}{
		{"echo", `{"word": "a\nb"}`, false, `{"word":"a\nb"}` + "\n", "map[exit_code:0]"},
		{"silent", `{}`, false, "lookup printed nothing.", "map[exit_code:0]"},
		{"fails", `{}`, true, "lookup ended with exit status 3. On its standard error:\nno such word\n", "map[exit_code:3]"},
		{"grumbles", `{}`, false, "fine\n", "map[exit_code:0 stderr:but slow]"},
		{"leaves", `{}`, false, "left one\n", "map[exit_code:0]"},
		{"silent", `{"big": "` + strings.Repeat("x", 1<<20) + `"}`, false, "lookup printed nothing.", "map[exit_code:0]"},
	} {
		outputs := new(tools.Outputs)
		got := dispatch(t, outputs, dynamic.Run(spec, program(t, test.program), time.Hour, outputs), test.input)[0]
		if got.Failed != test.failed || got.Output != test.want || fmt.Sprint(got.Detail) != test.detail {
			t.Errorf("%s: got %t %q %v, want %t %q %s", test.program, got.Failed, got.Output, got.Detail, test.failed, test.want, test.detail)
		}
	}
}

func TestACallThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	outputs := new(tools.Outputs)
	got := dispatch(t, outputs, dynamic.Run(spec, program(t, "hangs"), 100*time.Millisecond, outputs), `{}`)[0]
	if !got.Failed || !strings.HasPrefix(got.Output, "lookup took longer than 100ms and was ended") || got.Detail["timed_out"] != true {
		t.Errorf("got %+v", got)
	}
}

func TestACallThatIsCancelledIsEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	outputs := new(tools.Outputs)
	tool := dynamic.Run(spec, program(t, "hangs"), time.Hour, outputs)
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := tool.Run(ctx, tools.Call{Name: spec.Name, Input: "{}"}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestAProgramThatIsNotThereFailsTheCall(t *testing.T) {
	t.Parallel()
	p := program(t, "echo")
	p.Argv = []string{"no-such-program-anywhere"}
	outputs := new(tools.Outputs)
	got := dispatch(t, outputs, dynamic.Run(spec, p, time.Hour, outputs), `{}`)[0]
	if !got.Failed || !strings.Contains(got.Output, "no-such-program-anywhere") {
		t.Errorf("got %+v", got)
	}
}

func TestLongOutputsAreCutAndKept(t *testing.T) {
	t.Parallel()
	kept := &memory{files: map[string]*bytes.Buffer{}}
	outputs := &tools.Outputs{Create: kept.create}
	got := dispatch(t, outputs, dynamic.Run(spec, program(t, "floods"), time.Hour, outputs), `{}`)[0]
	if got.Failed || !strings.HasPrefix(got.Output, tools.CutWarning) || len(got.Output) > 50_000 {
		t.Errorf("%d bytes: %.200s", len(got.Output), got.Output)
	}
	if whole := kept.files["outputs/call_1.txt"]; whole == nil || whole.Len() != 200_000*17 {
		t.Errorf("kept: %v", kept.files)
	}
	got = dispatch(t, outputs, dynamic.Run(spec, program(t, "floodslist"), time.Hour, outputs), `{}`)[0]
	if got.Failed || !strings.HasPrefix(got.Output, tools.CutWarning) || len(got.Output) > 50_000 {
		t.Errorf("what looks like a list: %d bytes: %.200s", len(got.Output), got.Output)
	}
}

func pixels(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestItems(t *testing.T) {
	t.Parallel()
	data := "data:image/png;base64," + pixels(t)
	for _, test := range []struct {
		items  string
		want   string
		images int
	}{
		{`[{"type":"input_text","text":"a\n"},{"type":"input_text","text":"b"}]`, "a\nb", 0},
		{" \n[{\"type\":\"input_text\",\"text\":\"a\"},{\"type\":\"input_image\",\"image_url\":\"" + data + `"}] `, "a\n[Image: 2×3, png, ", 1},
		{`[` + strings.Repeat(`{"type":"input_image","image_url":"`+data+`"},`, 9) + `{"type":"input_text","text":"z"}]`, "[An image is left out: there are more than 8]\nz", 8},
		{`[{"type":"input_image","image_url":"https://example.com/a.png"}]`, "[An image is left out: image_url has to be a data URL", 0},
		{`[{"type":"input_image","image_url":"data:image/png;base64,!"}]`, "[An image is left out: its base64 is broken", 0},
		{`[{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="}]`, "[An image is left out: it is not a PNG, JPEG or GIF image]", 0},
		{`[{"type":"input_image","image_url":"data:text/html;base64,aGVsbG8="}]`, "[An image is left out: image_url has to be", 0},
		{`[{"type":"input_audio","text":"a"}]`, `[{"type":"input_audio","text":"a"}]`, 0},
		{`[]`, `[]`, 0},
		{`[{"type":"input_audio","text":"a"},{"type":"input_text","text":"b"},{"type":"input_text","text":7}]`, "image_url.]\nb\n[An item is left out", 0},
		{`[{"type":"input_image","image_url":"` + data + `"},{"type":"input_audio"}]`, "bytes]\n[An item is left out", 1},
		{`["a"]`, `["a"]`, 0},
		{`[{"type":"input_text","text":"a"}] and more`, `[{"type":"input_text","text":"a"}] and more`, 0},
		{`{"type":"input_text","text":"a"}`, `{"type":"input_text","text":"a"}`, 0},
	} {
		outputs := new(tools.Outputs)
		got := dispatch(t, outputs, dynamic.Run(spec, program(t, "items", "ITEMS="+test.items), time.Hour, outputs), `{}`)[0]
		if got.Failed || !strings.Contains(got.Output, test.want) || len(got.Images) != test.images {
			t.Errorf("%.100s: got %q with %d images", test.items, got.Output, len(got.Images))
		}
	}
}

// log is what a server writes beside its answers.
type log struct {
	mu      sync.Mutex
	written []byte
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = append(l.written, p...)
	return len(p), nil
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.written)
}

// serving is a server that may end as often as again says.
func serving(t *testing.T, again int) (*dynamic.Server, *log, *[]string) {
	t.Helper()
	var ends []string
	l := new(log)
	s := &dynamic.Server{Program: program(t, "server"), Log: l, Ended: func(why string) error {
		if ends = append(ends, why); len(ends) > again {
			return errors.New("it ended too often")
		}
		return nil
	}}
	t.Cleanup(s.Close)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s, l, &ends
}

func TestServe(t *testing.T) {
	t.Parallel()
	s, l, ends := serving(t, 0)
	results := dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{"say":"hello"}`, `{"do":"late"}`, `{"say":"again"}`, `{"do":"fail"}`, `{"do":"empty"}`, `{"do":"flood"}`, `{"say":"`+strings.Repeat("y", 1<<20)+`"}`, `{"do":"ahead"}`, `{"say":"true"}`)
	for i, want := range []string{
		"1 lookup call_1 7 hello", "at last", "3 lookup call_3 7 again", "it can't be done", "lookup answered in another form than agreed",
		"lookup answered with a line of more than", "7 lookup call_7 7 yyyy", "ahead", "9 lookup call_9 7 true",
	} {
		failed := i >= 3 && i <= 5
		if want != "" && (!strings.Contains(results[i].Output, want) || results[i].Failed != failed) {
			t.Errorf("call %d: got %t %.200q, want %q", i+1, results[i].Failed, results[i].Output, want)
		}
	}
	if len(*ends) > 0 {
		t.Errorf("it ended: %v", *ends)
	}
	s.Close()
	for _, want := range []string{"for nobody", "no JSON", "null", "once more", "a lie"} {
		if !strings.Contains(l.text(), "agent-ci: a line that answers no call under way: ") || !strings.Contains(l.text(), want) {
			t.Errorf("the log lacks %q:\n%s", want, l.text())
		}
	}
}

func TestAServerThatEndsIsStartedAnew(t *testing.T) {
	t.Parallel()
	s, l, ends := serving(t, 1)
	results := dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{"say":"a"}`, `{"do":"die"}`, `{"say":"b"}`, `{"do":"die"}`, `{"say":"c"}`)
	for i, want := range []string{
		"1 lookup call_1 7 a",
		"lookup failed: its process ended with exit status 4 while the call ran. The call is not made again: look at what it has done. It is started anew for the next call; what it knew is lost.",
		"1 lookup call_3 7 b",
		"lookup failed: its process ended with exit status 4 while the call ran. The call is not made again: look at what it has done. It is not started again.",
		"lookup can't be called: it ended too often",
	} {
		if failed := i == 1 || i > 2; results[i].Output != want || results[i].Failed != failed {
			t.Errorf("call %d: got %t %q, want %q", i+1, results[i].Failed, results[i].Output, want)
		}
	}
	if len(*ends) != 2 || strings.Count(l.text(), "dying") != 2 {
		t.Errorf("it ended: %q; log:\n%s", *ends, l.text())
	}
}

func TestAServerThatAnswersAndEndsHasAnswered(t *testing.T) {
	t.Parallel()
	s, _, ends := serving(t, 1)
	results := dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{"do":"answer and die"}`, `{"say":"b"}`)
	if results[0].Output != "my last" || results[0].Failed {
		t.Errorf("got %+v", results[0])
	}
	if len(*ends) != 1 {
		t.Errorf("it ended: %q", *ends)
	}
}

func TestAServerThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	s, _, ends := serving(t, 0)
	hung := dispatch(t, new(tools.Outputs), s.Tool(spec, 300*time.Millisecond), `{"do":"hang"}`)[0]
	if !hung.Failed || !strings.HasPrefix(hung.Output, "lookup took longer than 300ms. Its process was ended") {
		t.Errorf("got %+v", hung)
	}
	next := dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{"say":"b"}`)[0]
	if next.Output != "1 lookup call_1 7 b" || len(*ends) > 0 {
		t.Errorf("got %+v; it ended: %v", next, *ends)
	}
}

func TestAServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{{"no-such-program-anywhere"}, {"false"}} {
		p := program(t, "server")
		p.Argv = argv
		s := &dynamic.Server{Program: p, Log: io.Discard}
		err := s.Start()
		if err == nil {
			err = s.Ready(t.Context(), time.Now().Add(time.Hour))
		}
		if err == nil {
			t.Errorf("%s starts", argv[0])
		}
		s.Close()
	}
}

// TestAServerThatSaysThatItIsReadyIsWaitedForNoLonger waits an hour for one that does not say it.
func TestAServerThatSaysThatItIsReadyIsWaitedForNoLonger(t *testing.T) {
	t.Parallel()
	l := new(log)
	s := &dynamic.Server{Program: program(t, "greets"), Log: l}
	t.Cleanup(s.Close)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{"say":"hello"}`)[0]; got.Output != "1 lookup call_1 7 hello" {
		t.Errorf("got %+v", got)
	}
	if l.text() != "" {
		t.Errorf("the log has %q", l.text())
	}
}

// TestAnswersOfAnotherFormFailTheCallAtOnce has an hour for each call.
func TestAnswersOfAnotherFormFailTheCallAtOnce(t *testing.T) {
	t.Parallel()
	const agreed = "lookup answered in another form than agreed, so that nobody knows what came of the call: "
	texts := `"content_items":[{"type":"input_text","text":"a"}]`
	for answer, want := range map[string]string{
		texts + `,"success":"yes"`:               agreed + `success is "yes", and has to be true or false.`,
		texts + `,"success":1`:                   agreed + `success is 1, and has to be true or false.`,
		texts + `,"success":null`:                agreed + `success is null`,
		texts:                                    agreed + `success is missing`,
		`"content_items":"hi","success":true`:    agreed + `content_items is "hi", and has to be a list.`,
		`"content_items":{"a":1},"success":true`: agreed + `content_items is {"a":1}`,
		`"success":true`:                         agreed + `content_items is missing`,
		`"content_items":[],"success":true`:      "lookup printed nothing.",
		`"content_items":[],"success":false`:     "lookup failed, and said nothing of it.",
		`"content_items":["a"],"success":true`:   "[An item is left out: it is neither input_text with text nor input_image with image_url.]",
		`"content_items":[7,{"type":"input_text","text":"b"},{"type":"input_text"}],"success":true`: "image_url.]\nb\n[An item is left out",
	} {
		s := &dynamic.Server{Program: program(t, "answers", "ANSWER="+answer), Log: io.Discard}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		got := dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{}`)[0]
		if !strings.Contains(got.Output, want) || got.Failed != (strings.HasPrefix(want, agreed) || strings.Contains(answer, "false")) {
			t.Errorf("%s: got %t %q, want %q", answer, got.Failed, got.Output, want)
		}
		s.Close()
	}
}

func TestAServerThatClosesItsOutputIsEnded(t *testing.T) {
	t.Parallel()
	s := &dynamic.Server{Program: program(t, "turnsmute"), Log: io.Discard}
	t.Cleanup(s.Close)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	const want = "lookup failed: its process closed its standard output, was of no use any more and was ended"
	for i, got := range dispatch(t, new(tools.Outputs), s.Tool(spec, time.Hour), `{}`, `{}`) {
		if !got.Failed || !strings.HasPrefix(got.Output, want) {
			t.Errorf("call %d: got %+v", i+1, got)
		}
	}
}

func TestImagesAreTriedBeforeTheyAreCounted(t *testing.T) {
	t.Parallel()
	broken := "iVBORw0KGgo=" // the beginning of a PNG
	image := func(data string) string {
		return `{"type":"input_image","image_url":"data:image/png;base64,` + data + `"}`
	}
	items := "[" + strings.Repeat(image(broken)+",", 20) + image(pixels(t)) + "]"
	outputs := new(tools.Outputs)
	got := dispatch(t, outputs, dynamic.Run(spec, program(t, "items", "ITEMS="+items), time.Hour, outputs), `{}`)[0]
	if tried := strings.Count(got.Output, "unexpected EOF"); tried != 8 || len(got.Images) > 0 {
		t.Errorf("%d were tried and %d shown: %s", tried, len(got.Images), got.Output)
	}
	got = dispatch(t, outputs, dynamic.Run(spec, program(t, "items", "ITEMS=["+image(pixels(t))+"]"), time.Hour, outputs), `{}`)[0]
	digests, _ := got.Detail["images"].([]map[string]any)
	if len(got.Images) != 1 || len(digests) != 1 || len(fmt.Sprint(digests[0]["sha256"])) != 64 {
		t.Errorf("of an image the transcript has %v", got.Detail)
	}
}
