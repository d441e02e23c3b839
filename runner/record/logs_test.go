package record

import (
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/secrets"
)

func TestLogWriterRedactsAcrossWritesAndCuts(t *testing.T) {
	var file strings.Builder
	w := &LogWriter{file: &file, left: 24}
	w.clean = secrets.Stream{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter22", "[secret]") }, Put: w.put}
	for _, part := range []string{"pass hun", "ter22\nnext", " line\nthird\n"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if got, want := file.String(), "pass [secret]\nnext line\n"; !strings.HasPrefix(got, want) || !strings.Contains(got, "truncated") || strings.Contains(got, "hunter") {
		t.Errorf("log = %q, want it to begin with %q and to say that it is truncated", got, want)
	}
}

func TestLogNameIsAPlainFileName(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "a b\nc", strings.Repeat("x", 200), "Prüfung"} {
		got := LogName("verify-1", 2, name)
		file, ok := strings.CutPrefix(got, "outputs/verify-1-2-")
		if !ok || strings.ContainsAny(file, "/\n ") || len(file) > 44 {
			t.Errorf("LogName(%q) = %q", name, got)
		}
	}
}

// As the Go module cache does, checks make folders that their owner may not
// change; only user 0 may all the same.
func TestReadOnlyFoldersOfCommandsAreRemoved(t *testing.T) {
	dir, err := NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := dir.MakeFolder("tree/cache/module")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(tree, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir.Join("tree", "cache"), 0o500); err != nil {
		t.Fatal(err)
	}
	dir.Remove("tree")
	if dir.Has("tree") {
		t.Error("it is there")
	}
}
