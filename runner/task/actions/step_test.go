package actions_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

// runnerLines are the lines that the runner sees.
func runnerLines(log string) []string {
	return regexp.MustCompile("\r\n|\r|\n").Split(log, -1)
}

// isCommand says whether the runner would take a line for a command, of the
// new form or the old.
func isCommand(line string) bool {
	return strings.HasPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::") || strings.Contains(line, "##[")
}

func TestLogNeutralisesCommands(t *testing.T) {
	for text, want := range map[string]string{
		"plain: a::b # [x] ## [y]\n":           "plain: a::b # [x] ## [y]\n",
		"::set-output name=a::b\n":             "：:set-output name=a::b\n",
		"a\n \t::add-mask::b\r::stop::c\n":     "a\n \t：:add-mask::b\r：:stop::c\n",
		"\u00a0\u2003::error::b\n":             "\u00a0\u2003：:error::b\n",
		"a ##[error]b\n###[group]\n##[[x\n":    "a ##［error]b\n###［group]\n##［[x\n",
		"\x00::error::a\n\x1b::error::still\n": "\x00：:error::a\n\x1b：:error::still\n",
	} {
		var b bytes.Buffer
		log := actions.NewLog(&b)
		for i := range len(text) { // as it comes in pieces
			if n, err := log.Write([]byte{text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		must.Same(t, want, b.String(), text)
	}
}

func FuzzLog(f *testing.F) {
	f.Add("::error::a", "##", "[error]")
	f.Add(":", ":stop-commands::x", "\r\n::a")
	f.Add("\u2028", "::", "a")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var got bytes.Buffer
		log := actions.NewLog(&got)
		for _, part := range []string{a, b, c} {
			must.Get(log.Write([]byte(part)))(t)
		}
		for _, line := range runnerLines(got.String()) {
			must.Same(t, false, isCommand(line), line, "is a command")
		}
		got.Reset()
		must.Do(t, log.Annotate(actions.Annotation{Level: "error", Title: a, File: b, Line: 7, Message: c}))
		if lines := runnerLines(strings.TrimPrefix(got.String(), "\n")); len(lines) != 2 || lines[1] != "" {
			t.Errorf("an annotation is %q", lines)
		}
	})
}

func TestWritesWorkflowCommands(t *testing.T) {
	var b bytes.Buffer
	log := actions.NewLog(&b)
	steps := []func() error{
		func() error { return log.Group("the agent,\nat work: 100%") },
		func() error { _, err := log.Write([]byte("half a line")); return err },
		log.EndGroup,
		func() error { return log.Mask("one\r\n\ntwo") },
		func() error {
			return log.Annotate(actions.Annotation{Level: "error", Title: "tests, all", File: "a:b.go", Line: 3, Column: 2, Message: "x::y\nz"})
		},
		func() error { return log.Annotate(actions.Annotation{Level: "notice", Message: "done"}) },
	}
	for _, step := range steps {
		must.Do(t, step())
	}
	want := "::group::the agent,%0Aat work: 100%25\nhalf a line\n::endgroup::\n::add-mask::one\n::add-mask::two\n" +
		"::error col=2,file=a%3Ab.go,line=3,title=tests%2C all::x::y%0Az\n::notice::done\n"
	must.Same(t, want, b.String())
}

// outputs reads a file of outputs as the runner does
// (actions/runner, FileCommandManager: EnvFileKeyValuePairs).
func outputs(t *testing.T, path string) map[string]string {
	t.Helper()
	raw := must.Get(os.ReadFile(path))(t)
	found := map[string]string{}
	for rest := string(raw); rest != ""; {
		head, after, ended := strings.Cut(rest, "\n")
		name, delimiter, isLong := strings.Cut(head, "<<")
		if !ended || !isLong {
			t.Fatalf("%q begins no output", head)
		}
		var value []string
		for rest = after; ; {
			line, more, ended := strings.Cut(rest, "\n")
			if !ended {
				t.Fatalf("%s does not end", name)
			}
			if rest = more; strings.TrimSuffix(line, "\r") == delimiter {
				break
			}
			value = append(value, line)
		}
		found[name] = strings.Join(value, "\n")
	}
	return found
}

func FuzzOutputs(f *testing.F) {
	f.Add("changed", "two\nlines")
	f.Add("a\n_GitHubActionsFileCommandDelimeter_\nadmin<<X\ntrue\nX", "EOF\nx=y\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		step := &actions.Step{OutputFile: filepath.Join(t.TempDir(), "output")}
		want := map[string]string{"summary": a, "plan": b}
		for _, name := range []string{"summary", "plan"} {
			must.Do(t, step.SetOutput(name, want[name]))
		}
		must.Same(t, want, outputs(t, step.OutputFile))
	})
}

func TestBoundsOutputsAndSummary(t *testing.T) {
	dir := t.TempDir()
	step := &actions.Step{OutputFile: filepath.Join(dir, "output"), SummaryFile: filepath.Join(dir, "summary")}
	must.Do(t, step.SetOutput("summary", strings.Repeat("ü", 1<<20)))
	must.Do(t, step.AddSummary(strings.Repeat("ü", 1<<20)))
	if got := outputs(t, step.OutputFile)["summary"]; len(got) != 64<<10 || strings.Trim(got, "ü") != "" {
		t.Errorf("the output has %d bytes", len(got))
	}
	if info, err := os.Stat(step.SummaryFile); err != nil || info.Size() > 1<<20 {
		t.Errorf("the summary: %v, %v", info, err)
	}
	must.Do(t, (&actions.Step{}).SetOutput("a", "b"))
	must.Fail(t, "", (&actions.Step{OutputFile: dir}).SetOutput("a", "b"), "a folder takes outputs")
	pipe := filepath.Join(dir, "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	must.Is(t, syscall.ENXIO, (&actions.Step{SummaryFile: pipe}).AddSummary("a"), "a pipe that nobody reads")
}
