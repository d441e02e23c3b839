package progress

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Terminal is a terminal that can show a line that changes.
type Terminal struct {
	// Columns returns the width; 0 while nothing may be drawn, since another program has the cursor.
	Columns func() int
	Color   bool
}

const (
	redrawEvery = time.Second
	// plainEvery is how long a log without a terminal may be silent.
	plainEvery = 30 * time.Second
	// eraseTimeout is how long a run that hurries waits for the status line to be erased: a write to
	// somebody who does not read never ends, and must not keep the result back.
	eraseTimeout = 250 * time.Millisecond
)

// ShowStatus shows what the run does while no event comes, until over is called. On a terminal it is the
// last line; a log gets a line when nothing else was written for a while. The status line is erased
// for good once hurry has ended, or ctx if hurry is nil: the next signal kills the process, and
// nobody would erase it then.
func (w *Watch) ShowStatus(ctx, hurry context.Context) (over func()) {
	if w.Lines == nil {
		return func() {}
	}
	w.mu.Lock()
	now := time.Now()
	w.live, w.written = true, now
	w.status().began = now
	w.mu.Unlock()
	var hurried <-chan struct{}
	if hurry != nil {
		hurried = hurry.Done()
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer w.eraseForGood()
		w.redrawEverySecond(ctx, hurried, stop)
	}()
	return func() {
		close(stop)
		select {
		case <-ended:
			return
		case <-hurried:
		}
		select {
		case <-ended:
		case <-time.After(eraseTimeout):
		}
	}
}

// redrawEverySecond shows the status once a second until stop is closed. hurried is nil if a second signal
// kills the process.
func (w *Watch) redrawEverySecond(ctx context.Context, hurried, stop <-chan struct{}) {
	ticks := time.NewTicker(redrawEvery)
	defer ticks.Stop()
	ends := ctx.Done()
	for {
		select {
		case <-ticks.C:
			w.redraw()
		case <-ends:
			if ends = nil; hurried == nil {
				return
			}
			w.markStopping()
		case <-hurried:
			return
		case <-stop:
			return
		}
	}
}

func (w *Watch) redraw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Terminal != nil {
		w.draw()
		return
	}
	if w.Lines != nil && time.Since(w.written) >= plainEvery {
		w.beginGroup(string(w.status().phase))
		w.addToGroup("agent-ci: " + Printable(w.status().plain(time.Now())) + "\n")
	}
}

// markStopping shows that a signal has ended the work.
func (w *Watch) markStopping() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status().ending = true
	w.draw()
}

func (w *Watch) eraseForGood() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = false
	if w.Lines != nil && w.drawn {
		_, _ = io.WriteString(w.Lines, w.eraseSequence()) // nobody is left to be told that it failed
	}
}

// Begins implements record.StepObserver.
func (w *Watch) Begins(phase record.Phase, what string) (over func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status()
	if phase != "" {
		s.phase = phase
		w.beginGroup(string(phase))
	}
	begun := &activity{words: what, since: time.Now()}
	s.replaceActivity(begun)
	w.draw()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.activities = slices.DeleteFunc(s.activities, func(a *activity) bool { return a == begun })
		w.draw()
	}
}

// Follow sets the limits that the status shows, in dollars and tokens; 0 for none. known is a resumed run's view;
// nil for a new run.
func (w *Watch) Follow(known *transcript.View, costLimit float64, tokenLimit int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status()
	if s.costLimit, s.tokenLimit = costLimit, tokenLimit; known != nil {
		s.run = transcript.Follow(known)
	}
}

// status returns the status of the run. The first call makes it.
func (w *Watch) status() *status {
	if w.current == nil {
		w.current = &status{phase: record.PhaseSetup, began: time.Now(), run: transcript.Follow(&transcript.View{})}
	}
	return w.current
}

// The sequences by which a terminal is steered (ECMA-48; the private mode 7 of the VT100 is the
// wrapping of lines, of which this program may know less than the terminal).
const (
	eraseBelow = "\r\x1b[J"
	noWrap     = "\x1b[?7l"
	wrap       = "\x1b[?7h"
	cyan       = "\x1b[36m"
	plainColor = "\x1b[39m"
)

// draw replaces the status line. The cursor stays at its beginning: from there it is erased whole
// also after a terminal that became narrower has broken it into two lines.
func (w *Watch) draw() {
	if !w.live || w.Terminal == nil || w.Lines == nil {
		return
	}
	columns := w.Terminal.Columns()
	if columns == 0 {
		w.drawn = false // what others have written since is not to be erased
		return
	}
	head, rest := w.status().line(time.Now(), columns-1)
	if w.Terminal.Color {
		head = cyan + head + plainColor
	}
	if _, err := io.WriteString(w.Lines, eraseBelow+noWrap+head+rest+wrap+"\r"); err != nil {
		w.Lines = nil
	}
	w.drawn = true
}

// eraseSequence returns the sequence that erases the status line; empty if none is drawn.
func (w *Watch) eraseSequence() string {
	if !w.drawn {
		return ""
	}
	if w.drawn = false; w.Terminal.Columns() == 0 {
		return ""
	}
	return eraseBelow
}
