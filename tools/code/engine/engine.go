package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"modernc.org/quickjs"

	"github.com/agent-ci/agent-ci/tools/script/message"
)

const (
	// MaxBusy is the longest time that a script may compute without waiting. maxComputed limits its total
	// computing time.
	MaxBusy     = 30 * time.Second
	maxComputed = 5 * time.Minute
	// grace is the time for the interpreter to interrupt a script. After that, the process exits.
	grace = 500 * time.Millisecond
	// reportInterval is the interval of reports about a computing script.
	reportInterval = 50 * time.Millisecond
)

// Main is the main function of the engine process. It runs one script and returns the exit status. busy limits the
// computing time without a pause.
func Main(busy time.Duration) int {
	os.Clearenv()
	if err := confine(); err != nil {
		fmt.Fprintln(os.Stderr, "the engine can't limit itself:", err)
		return 1
	}
	o := &outbox{to: os.Stdout}
	s, err := newScript(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the engine does not start:", err)
		return 1
	}
	s.busyLimit = busy
	regexps() // compile the patterns now, while nobody waits for the engine
	o.add(0, func(r *message.Report) { r.Ready = true })
	o.flush()
	orders := message.NewReader(os.Stdin)
	var first message.Order
	if err := orders.Read(&first); err != nil || first.Run == nil {
		return 0 // the host does not need the engine any more
	}
	settled := make(chan []message.Settled)
	go listen(orders, settled) // until the process ends
	s.begin(*first.Run)
	s.serve(settled)
	return 0
}

// listen passes the results of calls to settled. It exits the process when the host closes the input.
func listen(orders *message.Reader, settled chan<- []message.Settled) {
	for {
		var order message.Order
		if orders.Read(&order) != nil {
			os.Exit(0)
		}
		settled <- order.Settled
	}
}

// serve resumes the script when results of calls arrive or timers are due, until the script has ended.
func (s *script) serve(settled <-chan []message.Settled) {
	for !s.ended {
		var due <-chan time.Time
		switch {
		case len(s.timers) > 0:
			due = time.After(time.Until(s.timers[0].due))
		case s.pendingCalls == 0:
			s.end(message.End{Failed: true, Error: s.stuckError()})
			return
		}
		select {
		case batch := <-settled:
			batch = append(batch, takeAvailable(settled)...)
			s.pendingCalls -= len(batch)
			s.resume("settle", batch)
		case <-due:
			s.resume("fire", s.timers.take(time.Now()))
		}
	}
}

// stuckError returns the error text for a script that has not ended, but waits for no call or timer.
func (s *script) stuckError() string {
	// If the script ran out of memory, some is free again by now. But a large allocation still fails.
	if _, err := s.vm.Eval("new ArrayBuffer(1 << 26); 0", quickjs.EvalGlobal); err != nil {
		return describeError(noMemory, "", "")
	}
	return "Error: the script waits for what cannot come: no call is under way and no timer is set."
}

// takeAvailable returns the results that can be received without waiting.
func takeAvailable(settled <-chan []message.Settled) (all []message.Settled) {
	for {
		select {
		case batch := <-settled:
			all = append(all, batch...)
		default:
			return all
		}
	}
}

// outbox collects changes for the next report to the host, and writes several at once.
type outbox struct {
	mu    sync.Mutex
	to    io.Writer
	next  message.Report
	bytes int  // size of the changes in next
	ended bool // the last report was written
}

// maxGathered is the size, in bytes, at which a report is written at once.
const maxGathered = 1 << 20

// add adds a change to the next report. bytes is the size of the change. At maxGathered, it writes the report.
func (o *outbox) add(bytes int, change func(*message.Report)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.next)
	o.bytes += bytes
	if o.bytes >= maxGathered {
		o.write()
	}
}

// flush writes the next report, unless it is empty.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write()
}

// end writes the last report, with the end of the script. Later reports are dropped.
func (o *outbox) end(end message.End) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next.End = &end
	o.write()
	o.ended = true
}

// write writes the next report, unless it is empty or the last one was written. The caller holds the lock.
func (o *outbox) write() {
	if o.ended || o.next.Empty() {
		return
	}
	if err := message.Write(o.to, o.next); err != nil {
		os.Exit(1) // the host has closed the output
	}
	o.next, o.bytes = message.Report{}, 0
}

// scriptEnd is the panic value of a host function that ends the script. The script cannot catch it.
type scriptEnd struct{ message.End }

// computeUntilWaiting calls run and lets the script compute until it waits for calls or timers. It writes reports while
// the script computes, and ends a script that computes too long.
func (s *script) computeUntilWaiting(run func() error) {
	allowed := min(s.busyLimit, maxComputed-s.computed)
	began := time.Now()
	overdue := message.End{Failed: true, Error: fmt.Sprintf("Error: the script computed for %.0f s without waiting for anything, and was ended.", s.busyLimit.Seconds())}
	if allowed < s.busyLimit {
		overdue.Error = fmt.Sprintf("Error: the script computed for %.0f minutes in all, and was ended.", maxComputed.Minutes())
	}
	exitTimer := time.AfterFunc(allowed+grace, func() {
		s.outbox.end(overdue)
		os.Exit(0)
	})
	defer exitTimer.Stop()
	stopReporting := s.reportPeriodically()
	end := s.compute(run, began.Add(allowed))
	stopReporting()
	s.computed += time.Since(began)
	switch {
	case end != nil:
		s.end(*end)
	case time.Since(began) >= allowed:
		s.end(overdue)
	default:
		s.outbox.flush()
	}
}

// reportPeriodically writes a report every reportInterval until stop is called.
func (s *script) reportPeriodically() (stop func()) {
	stopped := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.outbox.flush()
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		reporting.Wait()
	}
}

// compute calls run and executes the interpreter's pending jobs, up to the time until. end is nil unless the script
// ended.
func (s *script) compute(run func() error, until time.Time) (end *message.End) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case scriptEnd:
			end = &value.End
		default:
			panic(value)
		}
	}()
	if err := s.runUntil(until, run); err != nil {
		return endOf(err, until)
	}
	for time.Now().Before(until) {
		jobs := 0
		err := s.runUntil(until, func() (err error) {
			jobs, err = s.vm.ExecutePendingJobs()
			return err
		})
		if _, thrown := errors.AsType[*quickjs.Error](err); thrown || jobs == 0 {
			return endOf(err, until)
		}
	}
	return nil
}

// runUntil calls run. The interpreter interrupts JavaScript at the time until.
func (s *script) runUntil(until time.Time, run func() error) error {
	if err := s.vm.SetEvalTimeout(max(time.Until(until), time.Millisecond)); err != nil {
		return err
	}
	return run()
}

// endOf returns the end of a script that did not catch err. It returns nil if err is nil, or if the time until has come,
// because err is then only the interruption at that time.
func endOf(err error, until time.Time) *message.End {
	if err == nil || !time.Now().Before(until) {
		return nil
	}
	return &message.End{Failed: true, Error: err.Error()}
}
