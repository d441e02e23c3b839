package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// printing is a tool that prints what print writes.
func printing(o *Outputs, print func(io.Writer)) fake {
	return fake{name: "print", run: func(_ context.Context, call Call) (Result, error) {
		capture := o.Capture(call.ID)
		print(capture)
		return Result{Output: "header\n", Printed: capture.Take()}, nil
	}}
}

// finish passes a result through the outputs as the dispatcher does.
func finish(t *testing.T, o *Outputs, made fake) (Result, UncutOutput) {
	t.Helper()
	seen := new(journal)
	d := &Dispatcher{Registry: registry(made), Outputs: o, Observer: seen}
	result := d.Dispatch(t.Context(), []Call{{ID: "call_1", Name: made.name}})[0]
	return result, seen.finished["call_1"].Uncut
}

func saying(text string, budget int) fake {
	return fake{name: "say", run: func(context.Context, Call) (Result, error) { return Result{Output: text, Budget: budget}, nil }}
}

func redactHunter(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }

func TestKeepsFittingOutputsWhole(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain", "hello\n", "hello\n"},
		{"just at the budget", strings.Repeat("x", 40), strings.Repeat("x", 40)},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"NUL", "a\x00b", "a\uFFFDb"},
		{"a secret", "the word is hunter2.", "the word is ***."},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &Outputs{Budget: 10, Redact: redactHunter, Create: folder(t.TempDir()).Create}
			result, whole := finish(t, o, saying(test.text, 0))
			must.Same(t, Result{Output: test.want}, result)
			recorded, _ := o.finish(Call{}, Result{Output: test.text, Recorded: true})
			must.Same(t, test.want, recorded.Output, "from a record")
			if whole.Truncated || whole.File != "" {
				t.Errorf("whole is %+v", whole)
			}
		})
	}
}

func TestLongOutputKeepsEndsAndFile(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "line %d hunter2\n", i)
	}
	dir := t.TempDir()
	o := &Outputs{Budget: 100, Redact: redactHunter, Create: folder(dir).Create}
	for _, tool := range []fake{saying(text.String(), 0), printing(o, func(w io.Writer) { io.WriteString(w, text.String()) })} {
		t.Run(tool.name, func(t *testing.T) {
			result, whole := finish(t, o, tool)
			must.Contain(t, result.Output,
				fmt.Sprintf("Warning: truncated output (original token count: %d)\nTotal output lines: 1000\n", Tokens(int64(text.Len()))),
				"\nline 0 ***\n", "tokens truncated; the whole output is in "+filepath.Join(dir, whole.File)+", which read_file reads", "line 999 ***\n",
			)
			if len(result.Output) > 1000 {
				t.Errorf("the output has %d bytes", len(result.Output))
			}
			if !whole.Truncated || whole.Bytes != int64(text.Len()) || whole.Err != nil {
				t.Errorf("whole is %+v", whole)
			}
			must.Same(t, redactHunter(text.String()), string(must.Get(os.ReadFile(filepath.Join(dir, whole.File)))(t)), "the file", text.Len())
		})
	}
}

func TestCallMayOnlyLowerBudget(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	for _, test := range []struct {
		asked, most int
	}{{10, 40}, {50, 200}, {5000, 400}} {
		o := &Outputs{Budget: 100}
		result, whole := finish(t, o, saying(long, test.asked))
		kept := strings.Count(result.Output, "word ") * len("word ")
		if !whole.Truncated || kept > test.most || kept < test.most/2 {
			t.Errorf("asked for %d tokens: kept %d bytes, want at most %d", test.asked, kept, test.most)
		}
		must.Contain(t, result.Output, "the rest was not kept")
	}
}

// folder makes files in the folder of that path.
type folder string

func (f folder) Create(name string) (io.WriteCloser, string, error) {
	path := filepath.Join(string(f), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, "", err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return file, path, err
}

// failing makes files that fail.
type failing struct{ create, write error }

func (f failing) Create(string) (io.WriteCloser, string, error) { return f, "/run/outputs/x", f.create }
func (f failing) Write([]byte) (int, error)                     { return 0, f.write }
func (f failing) Close() error                                  { return nil }

func TestReportsUnkeptOutput(t *testing.T) {
	full := errors.New("disk full")
	for name, test := range map[string]struct {
		store failing
		words string
	}{
		"not created": {failing{create: full}, "the rest was not kept"},
		"not written": {failing{write: full}, "a part is in /run/outputs/x"},
	} {
		t.Run(name, func(t *testing.T) {
			result, whole := finish(t, &Outputs{Budget: 10, Create: test.store.Create}, saying(strings.Repeat("x", 100), 0))
			if !errors.Is(whole.Err, full) || !strings.Contains(result.Output, test.words) || result.Failed {
				t.Errorf("result %+v, whole %+v", result, whole)
			}
		})
	}
}

func TestLimitsOutputFile(t *testing.T) {
	dir := t.TempDir()
	o := &Outputs{Create: folder(dir).Create, FileLimit: 3 << 20}
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
	result, whole := finish(t, o, printing(o, func(w io.Writer) {
		for range 100 {
			w.Write(chunk)
		}
	}))
	must.Same(t, o.FileLimit, must.Get(os.Stat(filepath.Join(dir, whole.File)))(t).Size(), "file")
	must.Contain(t, result.Output, fmt.Sprintf("the first %d bytes are in", o.FileLimit))
	must.Same(t, int64(100*len(chunk)), whole.Bytes, whole, result.Output)
}

func TestRedactsSecretAcrossSpoolWindows(t *testing.T) {
	dir := t.TempDir()
	o := &Outputs{Create: folder(dir).Create, Redact: redactHunter}
	line := strings.Repeat("x", 50) + "hunter2\n"
	_, whole := finish(t, o, printing(o, func(w io.Writer) {
		all := strings.Repeat(line, 40_000)
		for len(all) > 0 { // pieces of an odd size cut secrets in two
			n := min(len(all), 1009)
			io.WriteString(w, all[:n])
			all = all[n:]
		}
	}))
	kept := must.Get(os.ReadFile(filepath.Join(dir, whole.File)))(t)
	must.Same(t, strings.Repeat(redactHunter(line), 40_000), string(kept), len(kept), "secrets in it", bytes.Count(kept, []byte("hunter2")))
}

// Much text is redacted in pieces, however it comes, and no secret stays where it is cut.
func TestRedactsLongTextInPieces(t *testing.T) {
	line := strings.Repeat("x", 50) + "hunter2\n"
	all := strings.Repeat(line, 140_000)
	middle := len(all)/2 + 3
	for name, r := range map[string]Result{
		"one text": {Output: all},
		"parts":    {Output: "header", Parts: []Part{{Text: all[:middle]}, {Text: all[middle:]}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, longest := t.TempDir(), 0
			o := &Outputs{Create: folder(dir).Create, Redact: func(text string) string {
				longest = max(longest, len(text))
				return redactHunter(text)
			}}
			result, whole := finish(t, o, fake{name: "say", run: func(context.Context, Call) (Result, error) { return r, nil }})
			kept := must.Get(os.ReadFile(filepath.Join(dir, whole.File)))(t)
			if longest > 2<<20 || !whole.Truncated || whole.Err != nil {
				t.Errorf("%d bytes were redacted in one piece; whole is %+v", longest, whole)
			}
			if len(kept) < len(redactHunter(all)) || strings.Contains(string(kept)+result.Output, "hunter2") {
				t.Errorf("%d bytes are kept; output\n%.300s", len(kept), result.Output)
			}
		})
	}
}

// What is left of an output that is nearly all secrets ends with no part of one.
func TestCutLeavesNoPartOfSecret(t *testing.T) {
	o := &Outputs{Redact: func(text string) string { return strings.ReplaceAll(text, "QZQZQZ7", "") }}
	result, _ := finish(t, o, printing(o, func(w io.Writer) { io.WriteString(w, strings.Repeat("QZQZQZ7", 200_000)) }))
	must.Same(t, false, strings.ContainsAny(result.Output, "QZ"), result.Output)
}

func TestOutputFilesGetSafeNames(t *testing.T) {
	o := new(Outputs)
	for _, test := range []struct{ id, want string }{
		{"call_a", "outputs/call_a.txt"},
		{"call_a", "outputs/call_a.2.txt"},
		{"CALL_A", "outputs/CALL_A.3.txt"}, // some file systems don't tell case
		{"../../x", "outputs/______x-"},
		{"", "outputs/-"},
		{strings.Repeat("y", 300), "outputs/" + strings.Repeat("y", 100) + "-"},
	} {
		got := o.fileName(test.id)
		if !strings.HasPrefix(got, test.want) || !filepath.IsLocal(got) || strings.Count(got, "/") != 1 {
			t.Errorf("%q: got %s, want %s…", test.id, got, test.want)
		}
	}
}

func TestCaptureKeepsEnds(t *testing.T) {
	source := make([]byte, 12*400_000)
	for i := range source {
		source[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for range 100 {
		var sizes []int
		c := new(Outputs).Capture("x")
		rest := source
		for range rand.IntN(13) {
			size := rand.IntN([]int{1, 100, 400_001, 400_001}[rand.IntN(4)])
			sizes = append(sizes, size)
			c.Write(rest[:size])
			rest = rest[size:]
		}
		all := source[:len(source)-len(rest)]
		p := c.Take()
		if p.Bytes() != int64(len(all)) {
			t.Fatalf("counted %d bytes of %d", p.Bytes(), sizes)
		}
		switch {
		case len(all) <= memoryLimit:
			if !bytes.Equal(p.head, all) || p.spool != nil {
				t.Fatalf("a short output of %d is not kept whole", sizes)
			}
		case !bytes.HasPrefix(all, p.head) || !bytes.HasSuffix(all, p.tail) || len(p.head)+len(p.tail) != memoryLimit:
			t.Fatalf("%d bytes at the head and %d at the tail are not the ends of %d", len(p.head), len(p.tail), sizes)
		}
		must.Do(t, p.Close())
		must.Same(t, 0, c.Take().Bytes(), "bytes of the second Take")
	}
}
