package dynamic_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dynamic"
	"github.com/agent-ci/agent-ci/tools/toolstest"
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
	"leaves": func() int { // a process that holds the output and goes on
		c := exec.Command("sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return 1
		}
		fmt.Println("left one")
		return 0
	},
	"items": func() int { fmt.Print(os.Getenv("ITEMS")); return 0 },
}

func program(t *testing.T, name string, env ...string) dynamic.Program {
	t.Helper()
	box := new(sandbox.Sandbox)
	t.Cleanup(func() {
		must.Is(t, nil, box.Close())
	})
	self := must.Get(os.Executable())(t)
	return dynamic.Program{Sandbox: box, Argv: []string{self, name}, Dir: t.TempDir(), Env: append(env, "PATH="+os.Getenv("PATH"))}
}

var spec = tools.Spec{Name: "lookup", Description: "x", Parameters: json.RawMessage(`{"type":"object"}`)}

// lookup calls a tool that starts a program.
func lookup(t *testing.T, p dynamic.Program, timeout time.Duration, input string) tools.Result {
	t.Helper()
	return toolstest.Call(t.Context(), dynamic.NewTool(spec, p, timeout, new(tools.Outputs)), spec.Name, input)
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
		got := lookup(t, program(t, test.program), time.Hour, test.input)
		if got.Failed != test.failed || got.Output != test.want || fmt.Sprint(got.Detail) != test.detail {
			t.Errorf("%s: got %t %q %v, want %t %q %s", test.program, got.Failed, got.Output, got.Detail, test.failed, test.want, test.detail)
		}
	}
}

func TestEndsCallAtTimeout(t *testing.T) {
	t.Parallel()
	got := lookup(t, program(t, "hangs"), 100*time.Millisecond, `{}`)
	if !got.Failed || !strings.HasPrefix(got.Output, "lookup took longer than 100ms and was ended") || got.Detail["timed_out"] != true {
		t.Errorf("got %+v", got)
	}
}

func TestCancelEndsCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	tool := dynamic.NewTool(spec, program(t, "hangs"), time.Hour, new(tools.Outputs))
	time.AfterFunc(50*time.Millisecond, cancel)
	must.Is(t, context.Canceled, must.Err(tool.Run(ctx, tools.Call{Name: spec.Name, Input: "{}"})))
}

func TestMissingProgramFailsCall(t *testing.T) {
	t.Parallel()
	p := program(t, "echo")
	p.Argv = []string{"no-such-program-anywhere"}
	must.Contain(t, toolstest.Failure(t, lookup(t, p, time.Hour, `{}`)), "no-such-program-anywhere")
}

func TestItems(t *testing.T) {
	t.Parallel()
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(toolstest.PNG(t, 2, 3))
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
		got := lookup(t, program(t, "items", "ITEMS="+test.items), time.Hour, `{}`)
		if got.Failed || !strings.Contains(got.Output, test.want) || len(got.Images) != test.images {
			t.Errorf("%.100s: got %q with %d images", test.items, got.Output, len(got.Images))
		}
	}
}

func TestDecodesAtMostEightImages(t *testing.T) {
	t.Parallel()
	broken := "iVBORw0KGgo=" // the beginning of a PNG
	image := func(data string) string {
		return `{"type":"input_image","image_url":"data:image/png;base64,` + data + `"}`
	}
	whole := image(base64.StdEncoding.EncodeToString(toolstest.PNG(t, 2, 3)))
	got := lookup(t, program(t, "items", "ITEMS=["+strings.Repeat(image(broken)+",", 20)+whole+"]"), time.Hour, `{}`)
	must.Same(t, 8, strings.Count(got.Output, "unexpected EOF"), "were tried", got.Output)
	must.None(t, got.Images, "were tried", got.Output)
	got = lookup(t, program(t, "items", "ITEMS=["+whole+"]"), time.Hour, `{}`)
	digests, _ := got.Detail["images"].([]map[string]any)
	if len(got.Images) != 1 || len(digests) != 1 || len(fmt.Sprint(digests[0]["sha256"])) != 64 {
		t.Errorf("of an image the transcript has %v", got.Detail)
	}
}
