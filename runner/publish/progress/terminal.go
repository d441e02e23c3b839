package progress

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Terminal is a terminal that can show a status line.
type Terminal struct {
	// Columns returns the width. It returns 0 while another program uses the terminal, so nothing may be drawn.
	Columns func() int
	Color   bool
}

const (
	redrawInterval = time.Second
	// maxLogSilence is how long a log without a terminal may be silent.
	maxLogSilence = 30 * time.Second
	// eraseTimeout is how long a forced stop waits for the erasing of the status line. If nothing reads the
	// terminal, the write never returns, and must not delay the result.
	eraseTimeout = 250 * time.Millisecond
)

// ShowStatus shows the status between events, until stopShowing is called. A terminal shows it in its last
// line. A log without a terminal gets a line after it was silent for a while.
//
// The first signal ends ctx, the second ends forced, and the third kills the process. So that no status line
// remains, ShowStatus erases it for good when forced ends, or when ctx ends if forced is nil. stopShowing
// returns after the line is erased, or eraseTimeout after forced ended.
func (w *Watch) ShowStatus(ctx, forced context.Context) (stopShowing func()) {
	if w.Lines == nil {
		return func() {}
	}
	w.mu.Lock()
	now := time.Now()
	w.mayDraw, w.written = true, now
	w.current.startedAt = now
	w.mu.Unlock()
	var forcedDone <-chan struct{} // nil: never ready
	if forced != nil {
		forcedDone = forced.Done()
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer w.eraseForGood()
		w.redrawRegularly(ctx, forcedDone, stop)
	}()
	return func() {
		close(stop)
		select {
		case <-done:
			return
		case <-forcedDone:
		}
		select { // a forced stop waits no longer than eraseTimeout
		case <-done:
		case <-time.After(eraseTimeout):
		}
	}
}

// redrawRegularly draws the status at every redrawInterval until stop or forcedDone is closed. When ctx ends,
// it shows that the run is stopping. forcedDone is nil if a second signal kills the process; then it returns.
func (w *Watch) redrawRegularly(ctx context.Context, forcedDone, stop <-chan struct{}) {
	ticks := time.NewTicker(redrawInterval)
	defer ticks.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case <-ticks.C:
			w.redraw()
		case <-cancelled:
			cancelled = nil
			if forcedDone == nil {
				return
			}
			w.markStopping()
		case <-forcedDone:
			return
		case <-stop:
			return
		}
	}
}

// redraw draws the status line. A log without a terminal gets a line if it was silent for maxLogSilence.
func (w *Watch) redraw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Terminal != nil {
		w.draw()
		return
	}
	if w.Lines != nil && time.Since(w.written) >= maxLogSilence {
		w.beginGroup(string(w.current.currentPhase()))
		w.addToGroup("agent-ci: " + Printable(w.current.logLine(time.Now())) + "\n")
	}
}

// markStopping shows that a signal is stopping the work.
func (w *Watch) markStopping() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current.stopping = true
	w.draw()
}

// eraseForGood erases the status line and prevents drawing it again.
func (w *Watch) eraseForGood() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayDraw = false
	if w.Lines != nil && w.isDrawn {
		_, _ = io.WriteString(w.Lines, w.eraseSequence()) // ignored: there is no other place to report an error
	}
}

// BeginActivity implements record.StepObserver. It shows an activity until endActivity is called.
func (w *Watch) BeginActivity(phase record.Phase, description string) (endActivity func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.current
	if phase != "" {
		s.phase = phase
		w.beginGroup(string(phase))
	}
	begun := &activity{description: description, since: time.Now()}
	s.replaceActivity(begun)
	w.draw()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.activities = slices.DeleteFunc(s.activities, func(a *activity) bool { return a == begun })
		w.draw()
	}
}

// InitStatus sets the limits that the status shows: cost in US dollars, and tokens. 0 means none. known is a
// resumed run's view, or nil for a new run.
func (w *Watch) InitStatus(known *transcript.View, costLimit float64, tokenLimit int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.current
	s.costLimit, s.tokenLimit = costLimit, tokenLimit
	if known != nil {
		s.setRun(known)
	}
}

// Control sequences of terminals (ECMA-48). Mode 7 of the VT100 wraps lines. It is off for the status line,
// because the terminal may count its cells differently.
const (
	eraseBelow = "\r\x1b[J"
	noWrap     = "\x1b[?7l"
	wrap       = "\x1b[?7h"
	cyan       = "\x1b[36m"
	plainColor = "\x1b[39m"
)

// draw replaces the status line. The cursor stays at the line's beginning. From there the whole line can be
// erased, even after a terminal became narrower and broke it into two.
func (w *Watch) draw() {
	if !w.mayDraw || w.Terminal == nil || w.Lines == nil {
		return
	}
	columns := w.Terminal.Columns()
	if columns == 0 {
		w.isDrawn = false // do not erase what other programs wrote since
		return
	}
	head, rest := w.current.terminalLine(time.Now(), columns-1)
	if w.Terminal.Color {
		head = cyan + head + plainColor
	}
	if _, err := io.WriteString(w.Lines, eraseBelow+noWrap+head+rest+wrap+"\r"); err != nil {
		w.Lines = nil
	}
	w.isDrawn = true
}

// eraseSequence returns the sequence that erases the status line, or "" if none is drawn.
func (w *Watch) eraseSequence() string {
	if !w.isDrawn {
		return ""
	}
	w.isDrawn = false
	if w.Terminal.Columns() == 0 {
		return ""
	}
	return eraseBelow
}
