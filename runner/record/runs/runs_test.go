package runs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// world is a user's home, where runs can go on that were model_failed or killed.
type world struct {
	t   *testing.T
	dir string
	now time.Time
}

func newWorld(t *testing.T) *world { return &world{t, t.TempDir(), time.Now()} }

func (w *world) get(variable string) string {
	if variable == "XDG_STATE_HOME" {
		return filepath.Join(w.dir, "state")
	}
	return ""
}

func (w *world) machine() Store {
	return Store{Getenv: w.get, Resumable: func(d *record.Directory) error {
		var result record.Result
		if there, err := d.ReadJSON(record.ResultFile, &result); err != nil || there && result.Outcome != outcome.ModelFailed {
			return errors.New("it has ended")
		}
		return nil
	}}
}

// run makes the directory of a run that began so long ago, at out or in the usual
// place. It goes on until the caller closes it.
func (w *world) run(ago time.Duration, out string, task transcript.Task) *record.Record {
	w.t.Helper()
	rec := record.New(record.NewID(w.now.Add(-ago)), nil)
	path := must.Get(record.DefaultPath(w.get, rec.ID, ""))(w.t)
	if out != "" {
		path = filepath.Join(w.dir, out)
		record.NoteElsewhere(w.get, rec.ID, path)
	}
	must.Do(w.t, rec.Make(path, nil))
	w.t.Cleanup(rec.Close)
	must.Do(w.t, rec.Begin(transcript.RunStarted{RunID: rec.ID, Job: []byte(`{}`)}))
	must.Do(w.t, rec.Append(task))
	must.Do(w.t, rec.Append(transcript.Workspace{Repository: "octo/widgets", BaseSHA: "a"}))
	return rec
}

// end ends a run as of the time at which it began.
func (w *world) end(rec *record.Record, o outcome.Outcome, pull record.PullRequest) {
	w.t.Helper()
	if o != "" {
		result := record.NewResult(rec.ID, outcome.Stopf(o, "so", "It is so."))
		result.PullRequest = pull
		must.Do(w.t, rec.WriteJSON(record.ResultFile, result))
	}
	rec.Close()
	began := record.StartTime(rec.ID)
	must.Do(w.t, os.Chtimes(rec.Join(record.TranscriptFile), began, began))
}

func (w *world) list() []Run {
	w.t.Helper()
	list := must.Get(w.machine().List())(w.t)
	return list
}

func TestListsRuns(t *testing.T) {
	w := newWorld(t)
	must.None(t, w.list())
	first := w.run(0, "", transcript.Task{Title: "Greet properly", Text: "x", Issue: "octo/widgets#7"})
	w.end(first, outcome.Changed, record.PullRequest{Number: 8, URL: "https://github.com/octo/widgets/pull/8", Operation: "created"})
	killed := w.run(0, "", transcript.Task{Text: "\n Mend the test.\nAnd more."})
	w.end(killed, "", record.PullRequest{})
	aside := w.run(0, "aside", transcript.Task{Text: "aside"})
	w.end(aside, outcome.ModelFailed, record.PullRequest{Operation: "none"})
	bundle := w.run(0, "", transcript.Task{Text: "bundle"})
	must.Do(w.t, bundle.WriteJSON(record.PublishFile, record.Result{Outcome: outcome.Changed, PullRequest: record.PullRequest{Number: 9, URL: "u", Operation: "created"}}))
	w.end(bundle, outcome.Changed, record.PullRequest{Operation: "none"})
	now := w.run(0, "", transcript.Task{Text: "now"})
	type told struct {
		ID, Task, Issue, State string
		Resumable              bool
		Outcome                outcome.Outcome
		Pull                   int
	}
	var got []told
	for _, r := range w.list() {
		got = append(got, told{r.ID, r.Task, r.Issue, r.State, r.Resumable, r.Outcome, r.PullRequest.Number})
		if r.Repository != "octo/widgets" || r.Started.IsZero() || !filepath.IsAbs(r.Directory) {
			t.Errorf("%+v", r)
		}
	}
	want := []told{
		{now.ID, "now", "", GoingOn, false, "", 0},
		{bundle.ID, "bundle", "", Ended, false, outcome.Changed, 9},
		{aside.ID, "aside", "", Ended, true, outcome.ModelFailed, 0},
		{killed.ID, "Mend the test.", "", Interrupted, true, "", 0},
		{first.ID, "Greet properly", "octo/widgets#7", Ended, false, outcome.Changed, 8},
	}
	must.Same(t, want, got)
	must.Contain(t, string(must.Get(json.Marshal(w.list()[4]))(t)), `"state":"ended","resumable":false,"outcome":"changed","reason":"so"`)
}

// What lies beside runs, or in the place of one, is none.
func TestIgnoresNonRuns(t *testing.T) {
	w := newWorld(t)
	folder := must.Get(record.RunsPath(w.get, ""))(w.t)
	id := record.NewID(w.now)
	for _, name := range []string{"sandbox-" + id, "notes", record.NewID(w.now)} { // of which the last has no transcript
		must.Do(w.t, os.MkdirAll(filepath.Join(folder, name), 0o700))
	}
	pipe := filepath.Join(folder, id)
	must.Do(w.t, os.Mkdir(pipe, 0o700))
	must.Do(w.t, syscall.Mkfifo(filepath.Join(pipe, record.TranscriptFile), 0o600))
	outside := w.run(0, "outside", transcript.Task{})
	w.end(outside, outcome.Changed, record.PullRequest{})
	must.Do(w.t, os.Symlink(outside.Path(), filepath.Join(folder, record.NewID(w.now))))
	record.NoteElsewhere(w.get, record.NewID(w.now), outside.Path())
	record.NoteElsewhere(w.get, record.NewID(w.now), "/nowhere")
	var ids []string
	for _, r := range w.list() {
		ids = append(ids, r.ID)
	}
	must.Same(t, []string{outside.ID}, ids)
}

func TestFindsRunByID(t *testing.T) {
	w := newWorld(t)
	usual, aside := w.run(0, "", transcript.Task{}), w.run(0, "aside", transcript.Task{})
	for name, want := range map[string]string{usual.ID: usual.Path(), aside.ID: aside.Path(), "run": "run", aside.Path(): aside.Path(), "20260301T090000Z-0a1b2c3d": "20260301T090000Z-0a1b2c3d"} {
		must.Same(t, want, w.machine().Find(name), name)
	}
}

// Notes are kept of the newest runs.
func TestBoundsElsewhereNotes(t *testing.T) {
	w := newWorld(t)
	for i := range 250 {
		record.NoteElsewhere(w.get, record.NewID(w.now.Add(time.Duration(i)*time.Second)), "/x")
	}
	must.Same(t, 200, len(record.RunsElsewhere(w.get)), "there are")
}

const day = 24 * time.Hour

// old is a world with runs of each kind, all of them old.
func old(t *testing.T) (w *world, runs map[string]*record.Record) {
	w, runs = newWorld(t), map[string]*record.Record{}
	for i, c := range []struct {
		name, out string
		end       outcome.Outcome
	}{
		{"ended", "", outcome.Changed},
		{"failed", "", outcome.ModelFailed},
		{"killed", "", ""},
		{"aside", "aside", outcome.Changed},
		{"newer", "", outcome.Changed},
	} {
		ago := 40*day - time.Duration(i)*time.Hour
		if c.name == "newer" {
			ago = day
		}
		runs[c.name] = w.run(ago, c.out, transcript.Task{Text: c.name})
		w.end(runs[c.name], c.end, record.PullRequest{})
	}
	on := w.run(50*day, "", transcript.Task{Text: "going on"})
	must.Do(w.t, os.Chtimes(on.Join(record.TranscriptFile), w.now.Add(-50*day), w.now.Add(-50*day)))
	runs["going on"] = on
	return w, runs
}

func TestPrune(t *testing.T) {
	for name, c := range map[string]struct {
		o    PruneOptions
		gone []string
		kept map[string]string
	}{
		"by age":                    {PruneOptions{Age: 30 * day}, []string{"ended"}, map[string]string{"going on": keptGoingOn, "failed": keptResumable, "killed": keptResumable, "aside": keptElsewhere}},
		"a trial":                   {PruneOptions{Age: 30 * day, DryRun: true}, nil, map[string]string{"going on": keptGoingOn, "failed": keptResumable, "killed": keptResumable, "aside": keptElsewhere}},
		"what can be resumed, too":  {PruneOptions{Age: 30 * day, Resumable: true}, []string{"ended", "failed", "killed"}, map[string]string{"going on": keptGoingOn, "aside": keptElsewhere}},
		"all that is younger stays": {PruneOptions{Age: 60 * day, Resumable: true}, nil, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := old(t)
			c.o.Now = w.now
			pruned := must.Get(w.machine().Prune(c.o))(w.t)
			kept := map[string]string{}
			for _, p := range pruned {
				if p.KeptReason != "" {
					kept[p.Task] = p.KeptReason
				} else if p.Bytes == 0 || p.Err != nil {
					t.Errorf("%+v", p)
				}
			}
			must.Same(t, c.kept, kept)
			for name, rec := range runs {
				must.Same(t, slices.Contains(c.gone, name), os.IsNotExist(must.Err(os.Stat(rec.Path()))), name)
			}
		})
	}
}

func TestPruneKeepsNewest(t *testing.T) {
	w := newWorld(t)
	var all []*record.Record
	for i := range 4 {
		all = append(all, w.run(time.Duration(i)*time.Hour, "", transcript.Task{}))
	}
	for _, rec := range all {
		w.end(rec, outcome.Changed, record.PullRequest{})
	}
	listed := w.list()
	_, err := w.machine().Prune(PruneOptions{Keep: 3, Now: w.now})
	must.Do(w.t, err)
	if left := w.list(); len(left) != 3 || left[2].ID != listed[2].ID {
		t.Errorf("%+v", left)
	}
	_, err = w.machine().Prune(PruneOptions{Keep: 1, Age: 150 * time.Minute, Now: w.now})
	must.Do(w.t, err)
	if left := w.list(); len(left) < 2 {
		t.Errorf("younger ones are gone: %+v", left)
	}
}

// A change that only the run directory has is not removed with it, unless somebody says so.
func TestPruneKeepsOnlyCopyOfChange(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		checkout  bool
		published outcome.Outcome
		kept      string
	}{
		"left in its checkout":      {"left_in_checkout", true, "", keptOnlyCopy},
		"committed in its checkout": {"committed", true, "", keptOnlyCopy},
		"publishing failed":         {"left_in_checkout", true, outcome.ForgeFailed, keptOnlyCopy},
		"published later":           {"left_in_checkout", true, outcome.Changed, ""},
		"published already":         {"left_in_checkout", true, outcome.NoChanges, ""},
		"in a person's checkout":    {"left_in_checkout", false, "", ""},
		"pushed":                    {"pushed", true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rec := w.run(day, "", transcript.Task{})
			must.Do(w.t, rec.WriteJSON(record.ResultFile, record.NewResult(rec.ID, outcome.Stopf(outcome.Changed, c.reason, "Done."))))
			if c.checkout {
				must.Do(w.t, rec.Root().Mkdir(record.CheckoutFolder, 0o700))
			}
			if c.published != "" {
				must.Do(w.t, rec.WriteJSON(record.PublishFile, record.Result{Outcome: c.published}))
			}
			w.end(rec, "", record.PullRequest{})
			for _, o := range []PruneOptions{{Now: w.now, DryRun: true}, {Now: w.now}} {
				if pruned, err := w.machine().Prune(o); err != nil || len(pruned) != 1 || pruned[0].KeptReason != c.kept {
					t.Errorf("%+v, %v", pruned, err)
				}
			}
			_, err := w.machine().Prune(PruneOptions{Now: w.now, Unpublished: true})
			if must.Do(w.t, err); len(w.list()) > 0 {
				t.Error("it stays whatever is said")
			}
		})
	}
}

func TestParsesAges(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 30 * day, "2w": 14 * day, "36h": 36 * time.Hour, "90m": 90 * time.Minute} {
		must.Same(t, want, must.Get(ParseAge(text))(t), text)
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1.5d", "30", "soon", "-5h", "0s", "99999999d"} {
		must.Fail(t, "", must.Err(ParseAge(text)), text)
	}
}
