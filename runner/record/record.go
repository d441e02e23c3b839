package record

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// Record is the record of a run in progress. Without a Directory, it accepts only warnings. Without
// a transcript, it folds events but does not write them. That is so for publishing a bundle and for
// running a single command.
type Record struct {
	*Directory
	ID string // of the run
	// Ephemeral means that the run directory disappears with the machine. People get the report
	// instead.
	Ephemeral bool
	// StepObserver shows the steps of BeginStep; may be nil.
	StepObserver StepObserver

	// DigestsFolder is the folder of transcript digests (DigestsPath). By them this machine
	// recognises the record later. "" records none.
	DigestsFolder string

	redaction
	state         foldedState
	warnings      warningList
	log           *eventlog.Log
	digests       digestFile
	stopHeartbeat func()     // nil if no heartbeat is written
	started       bool       // run.started was written
	landing       sync.Mutex // held while a landing begins, and by Leave for ever
}

// ErrLeft says that the process is exiting without waiting for the run.
var ErrLeft = errors.New("the process exits without waiting for the run")

// BeginLanding calls note before the run writes to the checkout. After Leave it returns ErrLeft instead.
func (r *Record) BeginLanding(note func() error) error {
	if !r.landing.TryLock() {
		return ErrLeft
	}
	defer r.landing.Unlock()
	return note()
}

// Leave prevents landings from now on. It returns false if one is just beginning. It never waits, because a disk may
// be stuck.
func (r *Record) Leave() bool { return r.landing.TryLock() }

// foldedState is the view that follows from the events so far.
type foldedState struct {
	mu        sync.Mutex // guards the fields below
	folder    *transcript.Folder
	concluded bool // the view was returned, so later events must not change it
}

// fold folds an event, unless the run is concluded, and calls show with the event and the view so far.
func (s *foldedState) fold(raw eventlog.Event, show Show) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := transcript.Decode(raw)
	if !s.concluded {
		s.folder.Apply(e)
	}
	if show != nil {
		show(s.folder.View(), e)
	}
}

// withView calls look with the view, which must not be used later.
func (s *foldedState) withView(look func(*transcript.View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(s.folder.View())
}

// conclude returns the view. Later events do not change it.
func (s *foldedState) conclude() *transcript.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.concluded = true
	return s.folder.View()
}

// warningList has the warnings so far. Parallel calls may warn.
type warningList struct {
	mu  sync.Mutex // guards all
	all []transcript.Warning
}

// add adds a warning, and reports whether it is new.
func (l *warningList) add(w transcript.Warning) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.all, w) {
		return false
	}
	l.all = append(l.all, w)
	return true
}

// New returns a record that redacts the given values everywhere.
func New(id string, values []secrets.Value) *Record {
	r := &Record{ID: id, state: foldedState{folder: transcript.NewFolder()}}
	r.SetSecrets(values)
	return r
}

// DescribeLogPlace says where the output of a command can be read, as the end of a sentence.
func (r *Record) DescribeLogPlace(logName string) string {
	if r.Ephemeral {
		return "its last lines are in the report"
	}
	return "log " + r.Join(logName)
}

// Make makes the run directory at path, locks it, and begins the transcript. show, which may be nil, gets each
// written event and the run so far.
func (r *Record) Make(path string, show Show) (err error) {
	if r.Directory, err = NewDirectory(path, "give another with --out, or set XDG_STATE_HOME"); err != nil {
		return err
	}
	if err := r.Lock(); err != nil {
		return err
	}
	if err := r.Reserve(); err != nil {
		return err
	}
	r.digests = digestFile{folder: r.DigestsFolder}
	if r.log, err = eventlog.Create(r.Join(TranscriptFile), r.logOptions(show)); err != nil {
		return fmt.Errorf("begin transcript: %w", err)
	}
	r.StartHeartbeat()
	return nil
}

// Reopen continues the transcript of a killed or stopped run. It removes an incomplete last line; tornBytes
// is the length of that line.
func (r *Record) Reopen(show Show) (tornBytes int, err error) {
	r.digests = r.reopenDigests(r.DigestsFolder)
	if r.log, tornBytes, err = eventlog.Reopen(r.Join(TranscriptFile), r.logOptions(show)); err != nil {
		return tornBytes, err
	}
	f, err := r.Open(TranscriptFile)
	if err != nil {
		return tornBytes, err
	}
	defer f.Close()
	r.state.folder, err = transcript.RestoreFolder(f)
	return tornBytes, err
}

// Show shows an event. It must not use the record, and use the view no later.
type Show = func(*transcript.View, transcript.Event)

// logOptions returns the options of the transcript: each written event is folded and shown.
func (r *Record) logOptions(show Show) eventlog.Options {
	return eventlog.Options{Redact: r.Redact, BeforeWrite: r.digests.addLine, Sink: func(e eventlog.Event) { r.state.fold(e, show) }} // r.Redact uses the current redactor, which may learn secrets
}

// Cost returns the cost of the run so far in US dollars. It is nil before the run began to work,
// and if a price is unknown.
func (r *Record) Cost() (cost *float64) {
	r.state.withView(func(v *transcript.View) { cost = v.Cost() })
	return cost
}

// HookUse returns how the hook called name was used so far. It is zero if the record does not list the hook.
func (r *Record) HookUse(name string) (found transcript.HookUse) {
	r.state.withView(func(v *transcript.View) {
		isNamed := func(use transcript.HookUse) bool { return use.Name == name || use.Name == r.Redact(name) }
		if i := slices.IndexFunc(v.Hooks, isNamed); i >= 0 {
			found = v.Hooks[i]
		}
	})
	return found
}

// Log returns the transcript, or nil. It is for writing many events.
func (r *Record) Log() *eventlog.Log { return r.log }

// Append is AppendBy for an event of the run's own agent.
func (r *Record) Append(data any) error { return r.AppendBy("", data) }

// AppendBy folds an event of an agent, and writes it if there is a transcript. The run's own agent
// has the name "". An event that can't be written still counts for the result.
func (r *Record) AppendBy(agent string, data any) error {
	if r.log == nil {
		return r.foldUnwritten(agent, data)
	}
	log := r.log
	if agent != "" {
		log = log.ForAgent(agent)
	}
	if _, err := log.Append(transcript.TypeOf(data), data); err != nil {
		return cmp.Or(fmt.Errorf("write transcript: %w", err), r.foldUnwritten(agent, data))
	}
	return nil
}

// foldUnwritten folds an event that was not written.
func (r *Record) foldUnwritten(agent string, data any) error {
	e, err := eventlog.NewEvent(cmp.Or(agent, transcript.MainAgent), transcript.TypeOf(data), data, r.Redact)
	if err == nil {
		r.state.fold(e, nil)
	}
	return err
}

// Conclude writes run.finished, with the usage of the run, and returns the view of the whole run. If writeErr
// is an error, the transcript cannot be written: Conclude only folds the event and returns writeErr.
func (r *Record) Conclude(end transcript.RunFinished, writeErr error) (*transcript.View, error) {
	r.state.withView(func(v *transcript.View) {
		end.Turns, end.Usage, end.CostUSD = v.AllRequestedTurns(), v.Usage, v.Cost()
		end.Calls, end.HostedCalls = v.Calls-v.UncountedCalls+v.HostedCalls, v.HostedCalls
	})
	err := writeErr
	if err == nil {
		err = cmp.Or(r.Append(end), r.SyncLog())
	} else {
		_ = r.foldUnwritten("", end) // cannot fail: end contains only texts and numbers
	}
	view := r.state.conclude()
	view.Started.RunID = cmp.Or(view.Started.RunID, r.ID)
	if r.log != nil {
		view.Head = r.log.Head()
	}
	return view, err
}

// Begin writes run.started and the warnings so far. Later calls do nothing.
func (r *Record) Begin(event transcript.RunStarted) error {
	if r.started {
		return nil
	}
	r.started = true
	if err := r.Append(event); err != nil {
		return err
	}
	for _, w := range r.warnings.all {
		if err := r.Append(w); err != nil {
			return err
		}
	}
	return nil
}

// Started reports whether run.started was written.
func (r *Record) Started() bool { return r.started }

// ContinueWarnings sets the warnings of a resumed run, whose run.started has been written.
func (r *Record) ContinueWarnings(warnings []transcript.Warning) {
	r.started, r.warnings.all = true, warnings
}

// Warn records a warning for people, once. Before run.started is written, the warning waits.
func (r *Record) Warn(code, format string, args ...any) {
	w := transcript.Warning{Code: code, Message: outcome.ShortenNames(r.Redact(fmt.Sprintf(format, args...)))}
	if isNew := r.warnings.add(w); isNew && r.started { // the job may be loaded twice, for another base
		_ = r.Append(w) // an error does not matter: a failing transcript is reported at the end
	}
}

// Warnings returns the warnings so far.
func (r *Record) Warnings() []transcript.Warning {
	r.warnings.mu.Lock()
	defer r.warnings.mu.Unlock()
	return slices.Clone(r.warnings.all)
}

// SyncLog makes the transcript durable on disk.
func (r *Record) SyncLog() error {
	if r.log == nil {
		return nil
	}
	_ = r.digests.file.Sync() // fails without a file
	if err := r.log.Sync(); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

// View returns the run so far for people. It reads the file, to save memory. It fails if the
// chain's head shows that somebody else changed the file.
func (r *Record) View() (*transcript.View, error) {
	view, err := r.Directory.View()
	if r.log == nil {
		return view, err
	}
	if err != nil || view.Head != r.log.Head() {
		return nil, outcome.Stopf(outcome.PolicyViolation, "transcript_altered",
			"%s was altered by something in the run; nothing was published. Look at what the commands did.", r.Join(TranscriptFile)).Because(err)
	}
	return view, nil
}

// View folds the transcript of a run directory into a view with entries. It fails if the transcript is damaged.
func (d *Directory) View() (*transcript.View, error) {
	return d.fold(func(log io.Reader) (*transcript.View, error) { return transcript.FoldWithEntries(log) })
}

// FoldEvents folds the complete lines of a transcript, and calls visit with each event. It fails if the
// transcript is damaged.
func (d *Directory) FoldEvents(visit func(*transcript.View, transcript.Event) error) (*transcript.View, error) {
	return d.fold(func(log io.Reader) (*transcript.View, error) { return transcript.FoldEvents(log, visit) })
}

// fold calls foldLog with the transcript. A damaged transcript is an error: only a report may show what is
// left of it.
func (d *Directory) fold(foldLog func(log io.Reader) (*transcript.View, error)) (*transcript.View, error) {
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	view, err := foldLog(f)
	if err = cmp.Or(view.Damage, err); err != nil { // the damage is in an earlier event, or has caused err
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	return view, nil
}

// Close stops the heartbeat and closes all files.
func (r *Record) Close() {
	r.StopHeartbeat()
	if r.log != nil {
		_ = r.log.Close()
	}
	_ = r.digests.file.Close() // fails without a file
	if r.Directory != nil {
		r.Directory.Close()
	}
}
