package record

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestShowsLastLinesOfLog(t *testing.T) {
	d := directory(t)
	long := strings.Repeat("é", maxShownLineBytes)
	for name, c := range map[string]struct{ log, want string }{
		"empty":             {"", ""},
		"only ends":         {"\n\n\r\n", ""},
		"one line":          {"one", "one"},
		"no more than 30":   {numbered(0, 100), strings.TrimSuffix(numbered(70, 100), "\n")},
		"progress bars":     {"10 %\r50 %\rdone\r\nnext\n", "done\nnext"},
		"colours, a title":  {"\x1b]0;gone\a\x1b[1;31mred\x1b[0m\x00\n", "red␀"},
		"a long line":       {"first\n" + long + "\n", "first\n" + long[:maxShownLineBytes/2] + "…" + long[:maxShownLineBytes/2]},
		"one without end":   {strings.Repeat("x", 2*lastLinesRead) + "THE END\n", strings.Repeat("x", maxShownLineBytes/2) + "…" + strings.Repeat("x", maxShownLineBytes/2-7) + "THE END"},
		"not Unicode":       {"a\xff\xfeb\n", "a�b"},
		"markers of format": {"a\u202eb\u200b\n", "ab"},
	} {
		must.Write(t, d.Join("log"), c.log)
		must.Same(t, c.want, must.Get(d.LastLines("log"))(t), name)
	}
	must.Write(t, d.Join("log"), strings.Repeat(strings.Repeat("x", 4000)+"\n", 100))
	got, err := d.LastLines("log")
	if err != nil || len(got) > maxShownBytes || strings.Count(got, "\n") < 5 {
		t.Errorf("of wide lines %d bytes are shown: %v", len(got), err)
	}
	must.Fail(t, "", must.Err(d.LastLines("none")), "a log that is not there has last lines")
}

func numbered(from, to int) string {
	var s strings.Builder
	for i := range to - from {
		fmt.Fprintf(&s, "line %d\n", from+i)
	}
	return s.String()
}

// Of a long log no more is read than its end.
func TestLastLinesReadOnlyEnd(t *testing.T) {
	d := directory(t)
	must.Write(t, d.Join("log"), "")
	f := must.Get(os.OpenFile(d.Join("log"), os.O_WRONLY, 0))(t)
	defer f.Close()
	if _, err := f.WriteAt([]byte("\n"+numbered(0, 40)), 200_000_000); err != nil { // zeros before it, which take no room
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := d.LastLines("log")
	runtime.ReadMemStats(&after)
	if err != nil || got != strings.TrimSuffix(numbered(10, 40), "\n") {
		t.Errorf("got %q, %v", got, err)
	}
	if read := after.TotalAlloc - before.TotalAlloc; read > 8<<20 {
		t.Errorf("it took %d bytes", read)
	}
}
