package record

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// noted is a run directory with some events, whose notes are in folder.
func noted(t *testing.T, folder string) *Record {
	t.Helper()
	r := New("x", nil)
	r.DigestsFolder = folder
	must.Do(t, r.Make(filepath.Join(t.TempDir(), "run"), nil))
	for _, code := range []string{"one", "two", "three"} {
		must.Do(t, r.Append(transcript.Warning{Code: code}))
	}
	t.Cleanup(r.Close)
	return r
}

func TestRecognisesOwnRecords(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "recorded")
	known := func(path string) bool {
		t.Helper()
		d := must.Get(OpenDirectory(path))(t)
		defer d.Close()
		return d.RecordedHere(folder)
	}
	own, other := noted(t, folder), noted(t, filepath.Join(t.TempDir(), "recorded"))
	if !known(own.Path()) || known(other.Path()) {
		t.Error("its own record is not told from another's")
	}
	if replay := noted(t, ""); known(replay.Path()) {
		t.Error("a record without notes is its own")
	}
	raw, err := os.ReadFile(own.Join(TranscriptFile))
	must.Do(t, err)
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"copied":                     {string(raw), true},
		"torn":                       {string(raw) + `{"v":1`, true},
		"cut":                        {string(raw[:lineEnd(raw, 2)]), true},
		"without a line":             {string(raw[:lineEnd(raw, 1)]) + string(raw[lineEnd(raw, 2):]), false},
		"with another last line":     {string(raw[:lineEnd(raw, 2)]) + string(raw[:lineEnd(raw, 1)]), false},
		"the first line alone, torn": {string(raw[:10]), false},
		"empty":                      {"", false},
	} {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, TranscriptFile), []byte(c.text), 0o600))
		must.Same(t, c.want, known(dir), name)
	}

	// It is continued as its own, and a stranger's stays one.
	own.Close()
	other.Close()
	for _, c := range []struct {
		path string
		want bool
	}{{own.Path(), true}, {other.Path(), false}} {
		again := New("x", nil)
		again.DigestsFolder = folder
		if again.Directory, err = OpenDirectory(c.path); err == nil {
			_, err = again.Reopen(nil)
		}
		if err == nil {
			err = again.Append(transcript.Warning{Code: "four"})
		}
		must.Do(t, err)
		again.Close()
		must.Same(t, c.want, known(c.path))
	}
	must.Do(t, os.Chmod(folder, 0o777))
	must.Same(t, false, known(own.Path()), "notes are trusted that others can change")
}

// lineEnd is where so many lines end.
func lineEnd(raw []byte, lines int) int {
	for i, c := range raw {
		if c == '\n' {
			if lines--; lines == 0 {
				return i + 1
			}
		}
	}
	return len(raw)
}
