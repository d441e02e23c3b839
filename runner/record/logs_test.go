package record

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
)

func TestLogWriterRedactsAcrossWritesAndCuts(t *testing.T) {
	var file strings.Builder
	w := &LogWriter{file: &file, headRoom: 24, maxTail: 6}
	w.redacted = secrets.NewStream(func(s string) string { return strings.ReplaceAll(s, "hunter22", "[secret]") }, w.keep)
	for _, part := range []string{"pass hun", "ter22\nnext", " line\nthird\n", "fourth\nfifth\n", "end\n"} {
		must.Get(w.Write([]byte(part)))(t)
	}
	w.Flush()
	want := "pass [secret]\nnext line\n\nagent-ci: the output is truncated; 19 bytes before its end were not kept\nend\n"
	must.Same(t, want, file.String(), "log")
}

func TestLogWriterCutsAtLimit(t *testing.T) {
	for output, want := range map[string]string{
		"":               "",
		"1234":           "1234",
		"12345":          "12345",
		"123456":         "12345\nagent-ci: the output is truncated",
		"123\n5\n7\n9\n": "123\n5\nagent-ci: the output is truncated",
	} {
		var file strings.Builder
		w := NewLogWriter(&file, CommandLogBytes, func(s string) string { return s })
		w.headRoom, w.maxTail = 5, 0
		for i := range len(output) {
			if n, err := w.Write([]byte{output[i]}); n != 1 || err != nil {
				t.Errorf("a byte is not taken: %d, %v", n, err)
			}
		}
		w.Flush()
		if got := file.String(); !strings.HasPrefix(got, want) || strings.Contains(got, "truncated") != strings.Contains(want, "truncated") {
			t.Errorf("the log of %q is %q, want %q", output, got, want)
		}
	}
}

// logs are what logs end and begin with.
var logs = map[string]string{
	"empty":              "",
	"one line":           "abc",
	"lines":              "one\ntwo\n\nthree\nfour\n",
	"no end of line":     "one\ntwo\nthree",
	"empty lines":        "\n\n\n\n",
	"more than ASCII":    "é→日\n→→\nöffnen\n",
	"not Unicode at all": "\xff\xfe\n\xff\n\xfe",
}

func TestTailMarksItsCut(t *testing.T) {
	d := directory(t)
	for name, log := range logs {
		must.Write(t, d.Join("log"), log)
		for length := range len(log) + 3 {
			got := must.Get(d.Tail("log", int64(length)))(t)
			whole := strings.ToValidUTF8(log, "�")
			rest, cut := strings.CutPrefix(got, "[…]\n")
			switch {
			case length >= len(log) && got != whole:
				t.Errorf("%s, %d bytes: %q is not all", name, length, got)
			case length >= len(log):
			case cut && !strings.HasSuffix(whole, rest):
				t.Errorf("%s, %d bytes: %q is not its end", name, length, got)
			case cut && !strings.HasSuffix(whole, "\n"+rest) && strings.Contains(strings.TrimRight(rest, "\n"), "\n"): // one line is shown as far as it goes
				t.Errorf("%s, %d bytes: %q does not begin with a line", name, length, got)
			case !cut && strings.Contains(got, "\n"):
				t.Errorf("%s, %d bytes: %q does not say that it is cut", name, length, got)
			case len(rest) > length+2*len("�"): // of a character that is cut
				t.Errorf("%s, %d bytes: %q is longer", name, length, got)
			}
			must.Same(t, true, utf8.ValidString(got), name, length, got, "is no text")
		}
	}
	must.Fail(t, "", must.Err(d.Tail("none", 10)), "a log that is not there has an end")
}

func TestEndsCountOmittedBytes(t *testing.T) {
	d := directory(t)
	for _, log := range []string{logs["empty"], logs["one line"], logs["lines"], logs["no end of line"], logs["empty lines"]} {
		must.Write(t, d.Join("log"), log)
		for head := range len(log) + 2 {
			for tail := range len(log) + 2 {
				got := must.Get(d.HeadAndTail("log", int64(head), int64(tail)))(t)
				if head+tail >= len(log) {
					must.Same(t, log, got, head, tail, "is not all")
					continue
				}
				var left int
				before, after, found := strings.Cut(got, "\n[… about ")
				count, after, _ := strings.Cut(after, " bytes left out …]\n")
				if _, err := fmt.Sscan(count, &left); !found || err != nil {
					t.Fatalf("%q, %d and %d bytes: %q", log, head, tail, got)
				}
				if !strings.HasPrefix(log, before) || !strings.HasSuffix(log, after) || len(before) > head || len(after) > tail {
					t.Errorf("%q, %d and %d bytes: %q", log, head, tail, got)
				}
				if all := len(before) + left + len(after); all != len(log) && all+len("\n") != len(log) { // the end of the last line before
					t.Errorf("%q, %d and %d bytes: %q has %d bytes", log, head, tail, got, all)
				}
			}
		}
	}
	must.Fail(t, "", must.Err(d.HeadAndTail("none", 1, 1)), "a log that is not there")
}

func TestLogNameIsPlainFileName(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "a b\nc", strings.Repeat("x", 200), "Prüfung"} {
		got := LogName("verify-1", 2, name)
		file, ok := strings.CutPrefix(got, "outputs/verify-1-2-")
		if !ok || strings.ContainsAny(file, "/\n ") || len(file) > 44 {
			t.Errorf("LogName(%q) = %q", name, got)
		}
	}
}
