package testresults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// allocated is how many bytes something allocates in all, those given back too.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Groups with long names, in each other, with many tests in the innermost.
func deepGroups(indent int, group, test string) string {
	var b strings.Builder
	for d := range 20 {
		b.WriteString(strings.Repeat(" ", indent*d) + group + strings.Repeat("x", 16_000) + "\n")
	}
	for i := range 1500 {
		fmt.Fprintf(&b, "%s%s%d\n", strings.Repeat(" ", indent*20), test, i)
	}
	return b.String()
}

func TestSmallOutputTakesLittleMemory(t *testing.T) {
	long := strings.Repeat("x", 15_000)
	lines := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	for name, output := range map[string]string{
		"groups of TAP":            "TAP version 13\n" + deepGroups(4, "# Subtest: ", "not ok - t"),
		"groups of TAP, skipped":   "TAP version 13\n" + deepGroups(4, "# Subtest: ", "ok # SKIP "),
		"groups of jest":           "FAIL a.test.js\n" + strings.ReplaceAll(deepGroups(2, "  ", "  ✓ t"), "    ✓", "  ✓"),
		"long names of go test":    lines(200, "=== RUN   T%d"+long+"\n    a_test.go:1: no\n"),
		"groups of go test":        lines(200, "--- FAIL: T%d"+strings.Repeat("/a", 7000)+" (0.00s)\n"),
		"long names of TAP":        "TAP version 13\n" + lines(200, "not ok %d"+strings.Repeat(" > a", 3500)+"\n"),
		"long names of pytest":     "= short test summary info =\n" + lines(200, "FAILED a.py::t%d"+long+"\n"),
		"long packages of go JSON": lines(200, `{"Action":"fail","Package":"p%d`+long+`","Test":"T"}`+"\n"),
	} {
		t.Run(name, func(t *testing.T) {
			got := allocated(func() {
				must.Is(t, nil, must.Err(Read(t.Context(), strings.NewReader(output), nil)))
			})
			if most := uint64(30*len(output) + 300<<20); got > most {
				t.Errorf("%d KB of output took %d MB", len(output)>>10, got>>20)
			}
		})
	}
}

func TestReportTakesBoundedMemory(t *testing.T) {
	full := func(element string) string {
		return "<testsuite>" + strings.Repeat(element, (MaxJUnit-100)/len(element)) + "</testsuite>"
	}
	for name, report := range map[string]string{
		"elements":     full("<a/>"),
		"tests":        full("<testcase/>"),
		"deep in one":  "<testsuite><testcase>" + strings.Repeat("<a>", 15) + strings.Repeat("x", 7<<20) + strings.Repeat("</a>", 15) + "</testcase></testsuite>",
		"tests nested": "<testsuite>" + strings.Repeat("<testcase>", 20) + strings.Repeat("</testcase>", 20) + "</testsuite>",
	} {
		var err error
		if got := allocated(func() { _, err = ReadJUnit(strings.NewReader(report)) }); err == nil || got > 2500<<20 {
			t.Errorf("%s: %d MB, %v", name, got>>20, err)
		}
	}
	var told *Results
	var err error
	inner := strings.Repeat("<a>", 10) + strings.Repeat("x", 7<<20) + strings.Repeat("</a>", 10)
	got := allocated(func() {
		told, err = ReadJUnit(strings.NewReader("<testsuite><testcase name='a'><system-out>" + inner + "</system-out></testcase></testsuite>"))
	})
	if err != nil || !told.Passed("a") || got > 300<<20 {
		t.Errorf("a long output of a test: %d MB, %v", got>>20, err)
	}
}

// hole is an output with a beginning and an end, and nothing between them.
type hole struct {
	end  string
	size int64
	at   int64
}

func (h *hole) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		offset += h.size
	}
	h.at = offset
	return offset, nil
}

func (h *hole) Read(p []byte) (int, error) {
	n := int(min(int64(len(p)), h.size-h.at))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = '.'
	}
	begin := "--- FAIL: TestFirst (0.00s)\n"
	put := func(text string, from int64) {
		for i := range len(text) {
			if at := from + int64(i) - h.at; at >= 0 && at < int64(n) {
				p[at] = text[i]
			}
		}
	}
	put(begin, 0)
	put("\n--- FAIL: TestMiddle (0.00s)\n", h.size/2)
	put(h.end, h.size-int64(len(h.end)))
	h.at += int64(n)
	return n, nil
}

func TestReadsBothEndsOfLongOutput(t *testing.T) {
	told := must.Get(Read(t.Context(), &hole{end: "\n--- FAIL: TestLast (0.00s)\nFAIL\nFAIL\tp\t0.1s\n", size: 2*maxEach + 1<<20}, nil))(t)
	var names []string
	for _, test := range told.Failing {
		names = append(names, test.Name)
	}
	if got := strings.Join(names, " "); got != "p.TestFirst p.TestLast" || told.Complete() {
		t.Errorf("%q, complete: %v", got, told.Complete())
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	must.Is(t, over, must.Err(Read(ctx, strings.NewReader("x\n"), nil)))
}
