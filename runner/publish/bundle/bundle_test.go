package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Whoever could write to the directory may have put anything there.
func TestRefusesDamagedBundleDirectories(t *testing.T) {
	t.Parallel()
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	replace := func(name string, by func(string) error) func(string) error {
		return func(dir string) error {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
			return by(filepath.Join(dir, name))
		}
	}
	link := func(path string) error { return os.Symlink("/etc/passwd", path) }
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	text := func(content string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	folder := func(by func(string) error) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, record.StateFolder)
			return errors.Join(os.RemoveAll(path), by(path))
		}
	}
	w := newWorld(t)
	for name, test := range map[string]struct {
		alter   func(dir string) error
		words   string
		chained bool
	}{
		"no transcript":         {alter: remove(record.TranscriptFile), words: "transcript.jsonl"},
		"no result":             {alter: remove(record.ResultFile), words: "the run did not end"},
		"a link":                {alter: replace(record.ResultFile, link), words: "result.json is no plain file"},
		"a pipe":                {alter: replace(record.TranscriptFile, pipe), words: "transcript.jsonl is no plain file"},
		"another result":        {alter: replace(record.ResultFile, text(`{"transcript_sha256": "ab"}`)), words: "names another end"},
		"another pack":          {alter: replace(record.PackFile, text("PACK")), words: "was altered", chained: true},
		"a file for a folder":   {alter: folder(text("")), words: "state is no folder"},
		"a link for a folder":   {alter: folder(link), words: "state is no folder"},
		"a link for the pack":   {alter: replace(record.PackFile, link), words: "changes.pack is no plain file"},
		"a link for the patch":  {alter: replace(record.PatchFile, link), words: "changes.patch is no plain file"},
		"another transcript":    {alter: replace(record.TranscriptFile, text("{}\n")), words: "The bundle cannot be published"},
		"a result of any size":  {alter: func(dir string) error { return os.Truncate(filepath.Join(dir, record.ResultFile), 1<<30) }, words: "more than"},
		"a transcript of a lie": {alter: func(dir string) error { return os.Truncate(filepath.Join(dir, record.TranscriptFile), 100) }, words: "The bundle cannot be published"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			rec := w.firstHalf(nil)
			must.Do(w.t, test.alter(rec.Path()))
			b, err := w.open(rec)
			outcometest.Want(t, err, "bundle", test.words)
			must.Same(t, test.chained, b.Head != "", "the end of the chain is", b.Head)
		})
	}
}

func TestRefusesUnpublishableRuns(t *testing.T) {
	t.Parallel()
	ended := func(end outcome.Outcome, reason string) func(*told) {
		return func(says *told) { says.finished.Outcome, says.finished.Reason = string(end), reason }
	}
	empty := func(says *told) {
		ended(outcome.NoChanges, "nothing_to_do")(says)
		says.change = &transcript.Change{}
	}
	w := newWorld(t)
	env := w.env
	budget := func(onBudget, reason string) func(*told) {
		return func(says *told) {
			ended(outcome.BudgetExceeded, reason)(says)
			says.job.Limits.OnBudget = onBudget
		}
	}
	for name, test := range map[string]struct {
		change  func(*told)
		noToken bool
		reason  string
	}{
		"changed":                {},
		"red":                    {change: ended(outcome.VerifyFailed, "red")},
		"no change":              {change: empty},
		"nobody to ask":          {change: empty, noToken: true, reason: "nothing_to_publish"},
		"an answer":              {change: ended(outcome.NoChanges, "answered"), reason: "nothing_to_publish"},
		"skipped":                {change: ended(outcome.Skipped, "same_input"), reason: "nothing_to_publish"},
		"failed":                 {change: ended(outcome.ModelFailed, "unavailable"), reason: "bundle"},
		"a draft on its budget":  {change: budget("draft", "tokens")},
		"another limit":          {change: budget("draft", "diff_files"), reason: "bundle"},
		"no draft on its budget": {change: budget("keep", "tokens"), reason: "bundle"},
		"a job that is none":     {change: func(s *told) { budget("draft", "tokens")(s); s.started.Job = []byte(`[]`) }, reason: "bundle"},
		"no change to see":       {change: func(s *told) { s.change = nil }, reason: "bundle"},
		"it has not ended":       {change: func(s *told) { s.finished.Outcome = "" }, reason: "bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			if w.t, w.env = t, env; test.noToken {
				w.env = env[:1]
			}
			_, err := w.open(w.firstHalf(test.change))
			if test.reason == "" {
				must.Do(w.t, err)
				return
			}
			outcometest.Want(t, err, test.reason)
		})
	}
}

func TestChecksTrailerValues(t *testing.T) {
	for id, want := range map[string]bool{"20260301T090000Z-0a1b2c3d": true, "": false, "a b": false, "a\nB: c": false, strings.Repeat("a", 65): false} {
		must.Same(t, want, record.IsSafeID(id), "IsSafeID", id)
	}
	for digest, want := range map[string]bool{strings.Repeat("0f", 32): true, strings.Repeat("0F", 32): false, "": false, strings.Repeat("0f", 31) + "\n0": false} {
		must.Same(t, want, isDigest(digest), "isDigest", digest)
	}
}

// A bundle makes the rules stricter, never laxer, and leaves those of this half as
// they are.
func TestBundleOnlyTightensRules(t *testing.T) {
	b := func(made string) Bundle {
		return Bundle{View: &transcript.View{Started: transcript.RunStarted{Job: []byte(made)}}}
	}
	ours := job.Job{OnVerifyFailed: "draft", Policy: job.Policy{Protect: []string{"ours"}}}
	j, err := b(`{"on_verify_failed": "none", "pull_request": {"draft": true, "title": "Theirs"}, "policy": {"protect": ["theirs"]}}`).withBundleRestrictions(ours)
	if err != nil || j.OnVerifyFailed != "none" || !j.PullRequest.Draft || strings.Join(j.Policy.Protect, " ") != "ours theirs" || j.PullRequest.Title != "" {
		t.Errorf("%+v, %v", j, err)
	}
	if len(ours.Policy.Protect) != 1 || ours.PullRequest.Draft {
		t.Errorf("the job of this half became %+v", ours)
	}
	ours.PullRequest.Draft, ours.OnVerifyFailed = true, "none"
	if j, err = b(`{"on_verify_failed": "draft"}`).withBundleRestrictions(ours); err != nil || !j.PullRequest.Draft || j.OnVerifyFailed != "none" {
		t.Errorf("%+v, %v", j, err)
	}
	_, err = b(`{"policy": {"protect": ["[", "` + "\\u0000" + `"]}}`).withBundleRestrictions(ours)
	outcometest.Want(t, err, "bundle", "policy.protect")
	_, err = b(`{"policy": {"protect": [` + strings.TrimSuffix(strings.Repeat(`"a",`, maxProtected+1), ",") + `]}}`).withBundleRestrictions(ours)
	outcometest.Want(t, err, "bundle", "policy.protect")
	_, err = b(`{"policy": 7}`).withBundleRestrictions(ours)
	outcometest.Want(t, err, "bundle", "its job cannot be read")
}
