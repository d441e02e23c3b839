package record

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// Record is the record of a run in progress. Without a Directory it accepts warnings only. Without
// a transcript, as for publishing a bundle or running a single command, it folds events and writes
// none.
type Record struct {
	*Directory
	ID string // of the run
	// Ephemeral reports that the run directory disappears with the machine, and people get its
	// report.
	Ephemeral bool
	// stepObserver receives the steps of Begins; may be nil.
	StepObserver stepObserver

	// DigestsFolder is the folder of transcript digests (DigestsPath), by which this machine recognises the
	// record later. "" records none.
	DigestsFolder string

	folding   sync.Mutex           // guards the two below
	folded    *transcript.Follower // what the events come to
	concluded bool                 // the view was given away, and later events change nothing

	log           *eventlog.Log
	digests       *digestFile
	stopHeartbeat func() // nil while no heartbeat is written
	started       bool   // run.started is written
	redactor      atomic.Pointer[secrets.Redactor]

	redactorLock sync.Mutex // guards the redactor's inputs
	secrets      []secrets.Value
	addedSecrets []secrets.Value            // besides
	isExempt     func(fragment string) bool // nil before ExemptBase

	warningsLock sync.Mutex // guards warnings: calls in parallel warn too
	warnings     []transcript.Warning
}

// New returns a record that removes the given values from everything.
func New(id string, hidden []secrets.Value) *Record {
	r := &Record{ID: id, folded: transcript.Follow(&transcript.View{})}
	r.SetSecrets(hidden)
	return r
}

// SetSecrets replaces the removed values, except learned ones. Nothing may write concurrently.
func (r *Record) SetSecrets(hidden []secrets.Value) {
	r.redactorLock.Lock()
	defer r.redactorLock.Unlock()
	r.secrets, r.isExempt = hidden, nil
	r.updateRedactor()
}

// AddSecret adds a removed value from now on. Others may write concurrently.
func (r *Record) AddSecret(name, secret string) {
	value := secrets.Value{Name: name, Secret: secret}
	r.redactorLock.Lock()
	defer r.redactorLock.Unlock()
	if slices.Contains(r.addedSecrets, value) {
		return
	}
	r.addedSecrets = append(r.addedSecrets, value)
	r.updateRedactor()
}

func (r *Record) updateRedactor() {
	redactor := secrets.NewRedactor(slices.Concat(r.secrets, r.addedSecrets))
	redactor.ExemptPublic(r.isExempt)
	r.redactor.Store(redactor)
}

// DescribeLogPlace returns the place of a command's output, as the end of a sentence.
func (r *Record) DescribeLogPlace(log string) string {
	if r.Ephemeral {
		return "its last lines are in the report"
	}
	return "log " + r.Join(log)
}

// Redact is text without the secrets of the run.
func (r *Record) Redact(text string) string { return r.redactor.Load().Redact(text) }

// Redactor finds the secrets of the run.
func (r *Record) Redactor() *secrets.Redactor { return r.redactor.Load() }

// Make makes the run directory at path, locks it, and begins the transcript. sink receives each
// written event.
func (r *Record) Make(path string, sink func(transcript.Event)) (err error) {
	if r.Directory, err = NewDirectory(path); err != nil {
		return err
	}
	if err := r.Lock(); err != nil {
		return err
	}
	if err := r.Reserve(); err != nil {
		return err
	}
	r.digests = &digestFile{folder: r.DigestsFolder}
	if r.log, err = eventlog.Create(r.Join(TranscriptFile), r.options(sink)); err != nil {
		return fmt.Errorf("begin transcript: %w", err)
	}
	r.StartHeartbeat()
	return nil
}

// Reopen continues the transcript of a killed or stopped run. It returns the number of bytes
// removed from an incomplete last line.
func (r *Record) Reopen(sink func(transcript.Event)) (torn int, err error) {
	r.digests = r.reopenDigests(r.DigestsFolder)
	if r.log, torn, err = eventlog.Reopen(r.Join(TranscriptFile), r.options(sink)); err != nil {
		return torn, err
	}
	f, err := r.Open(TranscriptFile)
	if err != nil {
		return torn, err
	}
	defer f.Close()
	r.folded, err = transcript.Refold(f)
	return torn, err
}

func (r *Record) options(sink func(transcript.Event)) eventlog.Options {
	return eventlog.Options{Redact: r.Redact, BeforeWrite: r.digests.add, Sink: func(e transcript.Event) { // the redactor may learn more
		r.fold(e)
		if sink != nil {
			sink(e)
		}
	}}
}

func (r *Record) fold(e transcript.Event) {
	r.folding.Lock()
	defer r.folding.Unlock()
	if !r.concluded {
		_ = r.folded.Apply(e) // this process wrote its data
	}
}

// Cost returns the cost of the run so far; nil before it has begun to work, and without a known
// price.
func (r *Record) Cost() *float64 {
	r.folding.Lock()
	defer r.folding.Unlock()
	return r.folded.View().Cost()
}

// Log returns the transcript for writing many events, or nil.
func (r *Record) Log() *eventlog.Log { return r.log }

// Append is AppendBy for the run's own agent.
func (r *Record) Append(kind transcript.Type, data any) error { return r.AppendBy("", kind, data) }

// AppendBy folds an event of a named agent and writes it if there is a transcript. The run's own
// agent has no name. An event that cannot be written counts for the result all the same.
func (r *Record) AppendBy(agent string, kind transcript.Type, data any) error {
	if r.log == nil {
		return r.count(agent, kind, data)
	}
	log := r.log
	if agent != "" {
		log = log.As(agent)
	}
	if _, err := log.Append(kind, data); err != nil {
		return cmp.Or(fmt.Errorf("write transcript: %w", err), r.count(agent, kind, data))
	}
	return nil
}

// count folds an event that is not written.
func (r *Record) count(agent string, kind transcript.Type, data any) error {
	e, err := eventlog.NewEvent(cmp.Or(agent, transcript.MainAgent), kind, data, r.Redact)
	if err == nil {
		r.fold(e)
	}
	return err
}

// Conclude writes the last event, with what the run used, and returns the view of the whole run. If
// unwritable is an error, the event is folded alone, and that error returned.
func (r *Record) Conclude(end transcript.RunFinished, unwritable error) (*transcript.View, error) {
	r.folding.Lock()
	view := r.folded.View()
	end.Turns, end.Usage, end.CostUSD = view.AllAsked(), view.Usage, view.Cost()
	end.Calls, end.Hosted = view.Calls-view.Uncounted+view.Hosted, view.Hosted
	r.folding.Unlock()
	err := unwritable
	if err == nil {
		err = cmp.Or(r.Append(transcript.TypeRunFinished, end), r.SyncLog())
	} else {
		_ = r.count("", transcript.TypeRunFinished, end) // a struct of texts and numbers
	}
	r.folding.Lock()
	defer r.folding.Unlock()
	r.concluded = true
	view.Started.RunID = cmp.Or(view.Started.RunID, r.ID)
	if r.log != nil {
		view.Head = r.log.Head()
	}
	return view, err
}

// Begin writes run.started and the warnings before it. Later calls do nothing.
func (r *Record) Begin(event transcript.RunStarted) error {
	if r.started {
		return nil
	}
	r.started = true
	if err := r.Append(transcript.TypeRunStarted, event); err != nil {
		return err
	}
	for _, w := range r.warnings {
		if err := r.Append(transcript.TypeWarning, w); err != nil {
			return err
		}
	}
	return nil
}

// Started reports whether run.started is written.
func (r *Record) Started() bool { return r.started }

// ResumeWarnings takes over the warnings of a resumed run.
func (r *Record) ResumeWarnings(warnings []transcript.Warning) {
	r.started, r.warnings = true, warnings
}

// Warn tells people of something, once.
func (r *Record) Warn(code, format string, args ...any) {
	w := transcript.Warning{Code: code, Message: outcome.ShortenNames(r.Redact(fmt.Sprintf(format, args...)))}
	r.warningsLock.Lock()
	defer r.warningsLock.Unlock()
	if slices.Contains(r.warnings, w) {
		return // the job is merged again on another base
	}
	r.warnings = append(r.warnings, w)
	if r.started {
		_ = r.Append(transcript.TypeWarning, w) // a log that fails is told at the end
	}
}

// Warnings returns the warnings so far.
func (r *Record) Warnings() []transcript.Warning {
	r.warningsLock.Lock()
	defer r.warningsLock.Unlock()
	return slices.Clone(r.warnings)
}

// SyncLog returns when the transcript is on disk.
func (r *Record) SyncLog() error {
	if r.log == nil {
		return nil
	}
	r.digests.sync()
	if err := r.log.Sync(); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

// View returns the run so far for people. It reads the file to save memory. The chain's head proves
// that nobody else wrote it.
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

// View folds the transcript of a run directory.
func (d *Directory) View() (*transcript.View, error) {
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	return transcript.Project(f, body.Excerpts)
}

// Survey folds a transcript as far as its lines are whole, and shows each event to
// visit.
func (d *Directory) Survey(visit func(*transcript.View, transcript.Event) error) (*transcript.View, error) {
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	view, err := transcript.FoldEvents(f, visit)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	return view, nil
}

// Close closes everything.
func (r *Record) Close() {
	r.StopHeartbeat()
	if r.log != nil {
		_ = r.log.Close()
	}
	r.digests.close()
	if r.Directory != nil {
		r.Directory.Close()
	}
}

// memoize looks each fragment up once, and maxExemptLookups of them.
func memoize(holds func(fragment string) bool) func(fragment string) bool {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(fragment string) bool {
		mu.Lock()
		defer mu.Unlock()
		if _, looked := known[fragment]; !looked && len(known) < maxExemptLookups {
			known[fragment] = holds(fragment)
		}
		return known[fragment]
	}
}
