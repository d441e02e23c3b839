package record

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// ended is the directory of a run with some files, which has ended as one does.
func ended(t *testing.T) *Directory {
	t.Helper()
	return endedBy(t, transcript.RunStarted{RunID: "r1"})
}

// endedBy is such a directory with what its first event says.
func endedBy(t *testing.T, started transcript.RunStarted) *Directory {
	t.Helper()
	rec := New("r1", nil)
	must.Do(t, rec.Make(t.TempDir(), nil))
	defer rec.Close()
	for _, name := range []string{PatchFile, PackFile, "outputs/a.log", "changes/1.patch", ReportFile, PublishFile, "state/alive", "checkout/file"} {
		must.Write(t, rec.Join(name), "of "+name)
	}
	must.Do(t, os.Remove(rec.Join(PublishFile))) // made by who publishes the bundle
	files := must.Get(rec.Digests(t.Context()))(t)
	err := rec.Begin(started)
	if err == nil {
		err = rec.Append(transcript.RunFinished{Outcome: "changed", Reason: "pushed", Message: "Done.", Files: files})
	}
	must.Do(t, err)
	view := must.Get(rec.FoldEvents(nil))(t)
	result := ResultFromView(view)
	result.TranscriptSHA256 = rec.Log().Head()
	must.Do(t, rec.WriteJSON(ResultFile, result))
	dir := must.Get(OpenDirectory(rec.Path()))(t)
	t.Cleanup(dir.Close)
	return dir
}

func checkRun(t *testing.T, d *Directory) *DirectoryVerification {
	t.Helper()
	return must.Get(VerifyDirectory(t.Context(), d.path))(t)
}

// replaceIn changes a text of a file.
func replaceIn(t *testing.T, path, old, by string) {
	t.Helper()
	was := content(t, path)
	if !strings.Contains(was, old) {
		t.Fatalf("%s has no %q", path, old)
	}
	must.Write(t, path, strings.Replace(was, old, by, 1))
}

func TestCheckReportsTampering(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, d *Directory)
		wrong  []string
		notes  []string
	}{
		"nothing": {func(*testing.T, *Directory) {}, nil, nil},
		"altered": {func(t *testing.T, d *Directory) { must.Write(t, d.Join("outputs/a.log"), "OF outputs/a.log") }, []string{"outputs/a.log was altered"}, nil},
		"cut":     {func(t *testing.T, d *Directory) { must.Write(t, d.Join("outputs/a.log"), "") }, []string{"outputs/a.log was altered"}, nil},
		"missing": {func(t *testing.T, d *Directory) { d.Remove("outputs") }, []string{"outputs/a.log is missing"}, nil},
		"all missing on the machine of the run": {
			func(t *testing.T, d *Directory) { onlyUploaded(d) },
			[]string{"changes/1.patch is missing", PackFile + " is missing", PatchFile + " is missing", "outputs/a.log is missing"},
			nil,
		},
		"added":           {func(t *testing.T, d *Directory) { must.Write(t, d.Join("outputs/z.log"), "") }, []string{"outputs/z.log was added"}, nil},
		"an empty folder": {func(t *testing.T, d *Directory) { _, _ = d.MakeFolder("empty") }, nil, nil},
		"renamed": {
			func(t *testing.T, d *Directory) { _ = d.root.Rename("outputs/a.log", "outputs/b.log") },
			[]string{"outputs/a.log is missing", "outputs/b.log was added"},
			nil,
		},
		"a link in its place": {
			func(t *testing.T, d *Directory) {
				must.Write(t, d.Join("state/copy"), content(t, d.Join(PatchFile)))
				_ = d.root.Remove(PatchFile)
				_ = d.root.Symlink("state/copy", PatchFile)
			}, []string{PatchFile + " was altered"}, nil,
		},
		"a pipe": {func(t *testing.T, d *Directory) { _ = syscall.Mkfifo(d.Join("pipe"), 0o600) }, []string{"pipe was added"}, nil},
		"what is no record": {func(t *testing.T, d *Directory) {
			must.Write(t, d.Join(ReportFile), "another")
			must.Write(t, d.Join("state/more"), "")
			must.Write(t, d.Join("checkout/more"), "")
		}, nil, nil},
		"a patch": {func(t *testing.T, d *Directory) { must.Write(t, d.Join(PatchFile), "another") }, []string{PatchFile + " was altered"}, nil},
		"a patch that was published again": {
			func(t *testing.T, d *Directory) {
				must.Write(t, d.Join(PublishFile), "{}")
				must.Write(t, d.Join(PatchFile), "another")
				must.Write(t, d.Join(PullRequestFile), "new")
				must.Write(t, d.Join("changes/1.patch"), "another")
			}, []string{"changes/1.patch was altered"}, []string{PatchFile + " was made again by agent-ci publish, and the transcript does not tell its digest"},
		},
		"a pull request without publishing": {func(t *testing.T, d *Directory) { must.Write(t, d.Join(PullRequestFile), "new") }, []string{PullRequestFile + " was added"}, nil},
		"another outcome": {
			func(t *testing.T, d *Directory) { replaceIn(t, d.Join(ResultFile), `"changed"`, `"no_changes"`) },
			[]string{ResultFile + " was altered: outcome is not as the transcript tells"},
			nil,
		},
		"a field more": {
			func(t *testing.T, d *Directory) { replaceIn(t, d.Join(ResultFile), "{", `{"more": 1,`) },
			[]string{ResultFile + " was altered: more is not as the transcript tells"},
			nil,
		},
		"a field less": {
			func(t *testing.T, d *Directory) { replaceIn(t, d.Join(ResultFile), `"denied": 0,`, "") },
			[]string{ResultFile + " was altered: a field of it is missing"},
			nil,
		},
		"other spaces": {func(t *testing.T, d *Directory) { replaceIn(t, d.Join(ResultFile), `"denied": 0`, `"denied":0`) }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := ended(t)
			c.change(t, d)
			checked := checkRun(t, d)
			must.Same(t, &DirectoryVerification{Head: checked.Head, Differences: c.wrong, Notes: c.notes}, checked)
			must.Same(t, true, checked.Head != "", "there is no head")
		})
	}
}

// onlyUploaded leaves of a run directory what the action uploads.
func onlyUploaded(d *Directory) {
	for _, name := range []string{PatchFile, PackFile, "outputs", "changes", StateFolder, CheckoutFolder} {
		d.Remove(name)
	}
}

// What the action uploads of a run is told apart from a run directory that something is missing of.
func TestDistinguishesUnuploadedFromMissing(t *testing.T) {
	for _, c := range []struct {
		change func(d *Directory)
		wrong  []string
		notes  []string
	}{
		{onlyUploaded, nil, []string{"4 other files of the run were not uploaded by its workflow, and cannot be checked here: changes/1.patch, changes.pack, changes.patch, …"}},
		{func(d *Directory) { d.Remove("outputs") }, []string{"outputs/a.log is missing"}, nil},
		{func(d *Directory) { onlyUploaded(d); must.Write(t, d.Join("more.log"), "") }, []string{"more.log was added"}, []string{"4 other files"}},
		{func(d *Directory) { onlyUploaded(d); must.Write(t, d.Join(PatchFile), "another") }, []string{PackFile + " is missing"}, nil},
	} {
		d := endedBy(t, transcript.RunStarted{RunID: "r1", RunPage: "https://github.com/o/r/actions/runs/7"})
		c.change(d)
		checked := checkRun(t, d)
		if got := strings.Join(checked.Differences, "\n"); !strings.Contains(got, strings.Join(c.wrong, "\n")) || (got == "") != (c.wrong == nil) {
			t.Errorf("wrong is %q, want %q", got, c.wrong)
		}
		if got := strings.Join(checked.Notes, "\n"); !strings.Contains(got, strings.Join(c.notes, "\n")) || (got == "") != (c.notes == nil) {
			t.Errorf("the notes are %q, want %q", got, c.notes)
		}
	}
}

func TestRefusesBrokenChain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, d *Directory)
		want   string
	}{
		"an event is changed":  {func(t *testing.T, d *Directory) { replaceIn(t, d.Join(TranscriptFile), `"r1"`, `"r2"`) }, "line 1"},
		"the last one is left": {func(t *testing.T, d *Directory) { dropLastLine(t, d.Join(TranscriptFile)) }, "names another end"},
		"another end": {func(t *testing.T, d *Directory) {
			replaceIn(t, d.Join(ResultFile), `"transcript_sha256": "`, `"transcript_sha256": "0`)
		}, "names another end"},
		"no result":               {func(t *testing.T, d *Directory) { d.Remove(ResultFile) }, ErrUnfinished.Error()},
		"a result that is none":   {func(t *testing.T, d *Directory) { must.Write(t, d.Join(ResultFile), "[") }, "read " + ResultFile},
		"a result that is a list": {func(t *testing.T, d *Directory) { must.Write(t, d.Join(ResultFile), "[]") }, "read " + ResultFile},
		"a folder for a result": {func(t *testing.T, d *Directory) {
			d.Remove(ResultFile)
			must.Write(t, d.Join(ResultFile, "file"), "")
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			d := ended(t)
			c.change(t, d)
			must.Fail(t, c.want, must.Err(VerifyDirectory(t.Context(), d.path)), "the error")
		})
	}
	must.Fail(t, "", must.Err(VerifyDirectory(t.Context(), t.TempDir())), "an empty folder is a run")
}

func dropLastLine(t *testing.T, path string) {
	t.Helper()
	log := strings.TrimSuffix(content(t, path), "\n")
	must.Write(t, path, log[:strings.LastIndexByte(log, '\n')+1])
}

func TestChecksRunWithoutDigests(t *testing.T) {
	rec, _ := begun(t)
	must.Do(t, rec.Append(transcript.RunFinished{Outcome: "changed"}))
	must.Do(t, rec.WriteJSON(ResultFile, map[string]string{"transcript_sha256": rec.Log().Head()}))
	if checked := checkRun(t, rec.Directory); checked.Head != rec.Log().Head() || len(checked.Differences) > 0 || len(checked.Notes) != 1 {
		t.Errorf("%+v", checked)
	}
}

func TestRequiresUnalteredFiles(t *testing.T) {
	dir := ended(t)
	view := must.Get(dir.View())(t)
	unaltered := func(names ...string) error { return dir.RequireUnaltered(t.Context(), view.Finished, names...) }
	must.Do(t, unaltered(PackFile, WorkPackFile, PatchesFolder))
	must.Write(t, dir.Join("changes/1.patch"), "another")
	dir.Remove(PackFile)
	for name, altered := range map[string]bool{PatchesFolder: true, "changes/1.patch": true, PackFile: false, PatchFile: false, "changes/2.patch": false} {
		err := unaltered(name)
		must.Same(t, altered, err != nil, name, err)
	}
	must.Do(t, dir.RequireUnaltered(t.Context(), nil, PatchesFolder), "a run without an end")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	must.Is(t, context.Canceled, dir.RequireUnaltered(stopped, view.Finished, PatchFile), "after the end of time")
	incomplete, err := dir.Digests(stopped)
	must.Is(t, context.Canceled, err, "after the end of time")
	must.None(t, incomplete, "the digests of a part of the files")
}

func TestRendersReportFromDisk(t *testing.T) {
	d := ended(t)
	page, err := WriteReport(d.path)
	if err != nil || page != d.Join(ReportFile) || !strings.Contains(content(t, page), "<html") {
		t.Errorf("%s, %v", page, err)
	}
	document, err := RenderDocument(d.path)
	if err != nil || !strings.Contains(document, "r1") {
		t.Errorf("%s, %v", document, err)
	}
	replaceIn(t, d.Join(TranscriptFile), "{", "[")
	_, reportErr := WriteReport(d.path)
	_, documentErr := RenderDocument(d.path)
	if reportErr == nil || documentErr == nil {
		t.Errorf("of no transcript: %v, %v", reportErr, documentErr)
	}
	if content(t, page) == "" {
		t.Error("the page that was there is gone")
	}
	for _, of := range []func(string) (string, error){WriteReport, RenderDocument} {
		outcometest.Want(t, must.Err(of(t.TempDir())), "run_directory", "is not a run directory")
	}
}

func TestOnlyReportsShowDamagedRecords(t *testing.T) {
	d := ended(t)
	replaceIn(t, d.Join(TranscriptFile), `"outcome":"`, `"turns":"x","outcome":"`)
	must.Fail(t, "turns is a string, not a whole number", must.Err(d.View()))
	must.Fail(t, "turns is a string, not a whole number", must.Err(d.FoldEvents(func(*transcript.View, transcript.Event) error { return nil })))
	must.Fail(t, "turns is a string, not a whole number", must.Err(d.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		return json.Unmarshal(e.Data, new(struct{ Turns int })) // fails because of the damage
	})))
	must.Contain(t, must.Get(RenderDocument(d.path))(t), "The transcript is damaged: transcript event ", "turns is a string, not a whole number.", "Outcome: `")
}
