package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

// directory is a new run directory.
func directory(t *testing.T) *Directory {
	t.Helper()
	d := must.Get(NewDirectory(filepath.Join(t.TempDir(), "run"), ""))(t)
	t.Cleanup(d.Close)
	return d
}

// content is a file's; "(none)" where there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	must.Do(t, err)
	return string(raw)
}

func TestIDsSortByTimeAndAreUnique(t *testing.T) {
	at := time.Date(2026, 3, 1, 23, 59, 59, 0, time.FixedZone("east", 3600))
	first, second, later := NewID(at), NewID(at), NewID(at.Add(time.Second))
	if first == second || first >= later || second >= later {
		t.Errorf("%s, %s, and later %s", first, second, later)
	}
	must.Same(t, true, strings.HasPrefix(first, "20260301T225959Z-"), first, "is not of a time in UTC")
}

func TestLocatesFolders(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	own := filepath.Join(temp, fmt.Sprintf("agent-ci-%d", os.Getuid()))
	for name, c := range map[string]struct{ runnerTemp, state, home, run, digests, baselines string }{
		"in Actions, a state folder": {"/runner", "/state", "/home/x", "/runner/agent-ci/id", "/state/agent-ci/recorded", "/state/agent-ci/baselines"},
		"in Actions":                 {"/runner", "", "/home/x", "/runner/agent-ci/id", "", "/home/x/.local/state/agent-ci/baselines"},
		"a state folder":             {"", "/state", "/home/x", "/state/agent-ci/runs/id", "/state/agent-ci/recorded", "/state/agent-ci/baselines"},
		"the user's":                 {"", "", "/home/x", "/home/x/.local/state/agent-ci/runs/id", "/home/x/.local/state/agent-ci/recorded", "/home/x/.local/state/agent-ci/baselines"},
		"a relative home":            {"", "", "home", filepath.Join(own, "id"), "", ""},
		"a relative state folder":    {"", "relative", "", "relative/agent-ci/runs/id", "", ""},
		"a user without one":         {"", "", "", filepath.Join(own, "id"), "", ""},
	} {
		get := func(variable string) string {
			return map[string]string{"RUNNER_TEMP": c.runnerTemp, "XDG_STATE_HOME": c.state, "HOME": c.home}[variable]
		}
		must.Same(t, c.run, must.Get(DefaultPath(get, "id", ""))(t), name)
		if digests, baselines := DigestsPath(get), BaselinesPath(get); digests != c.digests || baselines != c.baselines {
			t.Errorf("%s: digests in %q, baselines in %q; want %q, %q", name, digests, baselines, c.digests, c.baselines)
		}
	}
}

func TestRefusesUnsafeRunFolder(t *testing.T) {
	for name, make := range map[string]func(own string) error{
		"others may write": func(own string) error { return errors.Join(os.Mkdir(own, 0o700), os.Chmod(own, 0o777)) },
		"a group may":      func(own string) error { return errors.Join(os.Mkdir(own, 0o700), os.Chmod(own, 0o770)) },
		"a link":           func(own string) error { return os.Symlink(t.TempDir(), own) },
		"a file":           func(own string) error { return os.WriteFile(own, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			must.Do(t, make(filepath.Join(temp, fmt.Sprintf("agent-ci-%d", os.Getuid()))))
			outcometest.Want(t, must.Err(DefaultPath(func(string) string { return "" }, "id", "give another")), "run_directory", "give another, or set HOME")
		})
	}
}

func TestNewDirectoryIsEmptyAndPrivate(t *testing.T) {
	folder := t.TempDir()
	must.Write(t, filepath.Join(folder, "taken", ".hidden"), "")
	must.Write(t, filepath.Join(folder, "file"), "")
	must.Do(t, os.Mkdir(filepath.Join(folder, "empty"), 0o755))
	for name, says := range map[string]string{
		"new/and/deep": "", "empty": "", "taken": "is not empty", "file": "cannot be made", "file/below": "cannot be made",
	} {
		d, err := NewDirectory(filepath.Join(folder, name), "")
		if says != "" {
			outcometest.Want(t, err, "run_directory", says)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d.Close()
	}
	must.Same(t, 0o700, must.Get(os.Stat(filepath.Join(folder, "new")))(t).Mode().Perm(), "others may look at")
}

func TestOpensOnlyRunDirectories(t *testing.T) {
	folder := t.TempDir()
	must.Write(t, filepath.Join(folder, "run", TranscriptFile), "")
	must.Write(t, filepath.Join(folder, "other", "file"), "")
	for name, says := range map[string]string{"run": "", "other": "it has no " + TranscriptFile, "missing": "is not a run directory", "run/" + TranscriptFile: "is not a run directory"} {
		d, err := OpenDirectory(filepath.Join(folder, name))
		if says != "" {
			outcometest.Want(t, err, "run_directory", says)
			continue
		}
		must.Do(t, err)
		d.Close()
	}
	t.Chdir(folder)
	d := must.Get(OpenDirectory("run"))(t)
	defer d.Close()
	if !filepath.IsAbs(d.Path()) || d.Join("a", "b") != filepath.Join(d.Path(), "a/b") {
		t.Errorf("it is at %s, and a file in it at %s", d.Path(), d.Join("a", "b"))
	}
}

func TestLocksDirectoryForOneProcess(t *testing.T) {
	first := directory(t)
	must.Do(t, first.Lock())
	second := &Directory{path: first.path}
	outcometest.Want(t, second.Lock(), "run_directory", "Another agent-ci works in "+first.path)
	first.Close()
	must.Do(t, second.Lock(), "after the first")
	second.lockFile.Close()
	must.Fail(t, "", (&Directory{path: filepath.Join(first.path, "gone")}).Lock(), "a folder that is not there is locked")
}

func TestReportsUnwritableDirectory(t *testing.T) {
	d := directory(t)
	must.Do(t, d.CheckWritable())
	must.None(t, must.Get(os.ReadDir(d.path))(t), "is left of the trial")
	must.Do(t, os.Remove(d.path))
	outcometest.Want(t, d.CheckWritable(), "run_directory", "cannot be written")
	outcometest.Want(t, d.Reserve(), "run_directory", "make room")
}

func TestReplacesFilesAtomically(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		file  string
		write func(io.Writer) error
		want  string
		fails bool
	}{
		"new":                {"deep/file", func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }, "new", false},
		"in place":           {"file", func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }, "new", false},
		"nothing":            {"file", func(io.Writer) error { return nil }, "", false},
		"it breaks off":      {"file", func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return broken }, "old", true},
		"a folder is there":  {"folder", func(io.Writer) error { return nil }, "", true},
		"too deep":           {"a/b/file", func(io.Writer) error { return nil }, "(none)", true},
		"out of it":          {"../file", func(io.Writer) error { return nil }, "", true},
		"by a link out":      {"outside/file", func(io.Writer) error { return nil }, "", true},
		"in place of a link": {"link", func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }, "new", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := directory(t)
			must.Write(t, d.Join("file"), "old")
			must.Write(t, d.Join("folder", "file"), "old")
			target := filepath.Join(t.TempDir(), "target")
			must.Write(t, target, "theirs")
			must.Do(t, errors.Join(os.Symlink(target, d.Join("link")), os.Symlink(filepath.Dir(target), d.Join("outside"))))
			err := d.Replace(c.file, c.write)
			if (err != nil) != c.fails || c.fails && !strings.HasPrefix(err.Error(), "write "+c.file+": ") {
				t.Errorf("the error is %v", err)
			}
			if c.want != "" {
				must.Same(t, c.want, content(t, d.Join(c.file)))
			}
			must.Same(t, false, d.Has(c.file+".new"), "the half file is left")
			must.Same(t, "theirs", content(t, target), "a file outside")
		})
	}
}

func TestReadsOnlyFilesInDirectory(t *testing.T) {
	d := directory(t)
	must.Write(t, d.Join("file"), "text")
	outside := filepath.Join(t.TempDir(), "secret")
	must.Write(t, outside, "secret")
	large := must.Get(d.Create("large"))(t)
	must.Do(t, errors.Join(large.Truncate(MaxRead+1), large.Close(), os.Symlink(outside, d.Join("out")), os.Symlink("file", d.Join("in")),
		os.Symlink("nowhere", d.Join("dangling")), os.Mkdir(d.Join("folder"), 0o700), syscall.Mkfifo(d.Join("pipe"), 0o600)))
	for name, want := range map[string]string{"file": "text", "in": "text", "out": "", "dangling": "", "folder": "", "pipe": "", "large": "", "none": ""} {
		got, err := d.Read(name)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
		must.Same(t, name != "none", d.Has(name), name)
	}
}

func TestMakesFoldersOnlyBelowDirectory(t *testing.T) {
	d := directory(t)
	must.Same(t, d.Join("a", "b"), must.Get(d.MakeFolder("a/b"))(t))
	must.Do(t, must.Err(d.MakeFolder("a/b")), "one that is there")
	must.Write(t, d.Join("file"), "")
	for _, name := range []string{"../other", "file/below"} {
		must.Fail(t, "", must.Err(d.MakeFolder(name)), name, "is made")
	}
	d.Remove("a")
	must.Same(t, false, d.Has("a"), "it is not removed")
}
