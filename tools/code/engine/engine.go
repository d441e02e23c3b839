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
	// maxBusy is how long a script may compute without waiting for anything, and maxComputed
	// how long in all.
	maxBusy     = 30 * time.Second
	maxComputed = 5 * time.Minute
	// grace is the language's time to notice that.
	grace = 500 * time.Millisecond
	// tellEvery is the interval of reports about a computing script.
	tellEvery = 50 * time.Millisecond
)

// Main is the process: it runs one script and gives the exit status.
func Main(input io.Reader, output io.Writer, problems io.Writer) int {
	return Within(maxBusy, input, output, problems)
}

// Within is Main with a limit for computing without waiting.
func Within(busy time.Duration, input io.Reader, output io.Writer, problems io.Writer) int {
	os.Clearenv()
	if err := confine(); err != nil {
		fmt.Fprintln(problems, "the engine can't limit itself:", err)
		return 1
	}
	o := &outbox{to: output}
	s, err := newScript(o)
	if err != nil {
		fmt.Fprintln(problems, "the engine does not start:", err)
		return 1
	}
	s.busy = busy
	made() // now, since nobody waits for the engine yet
	o.add(0, func(r *message.Report) { r.Ready = true })
	o.flush()
	orders := message.NewReader(input)
	var first message.Order
	if err := orders.Read(&first); err != nil || first.Run == nil {
		return 0 // nobody needs it any more
	}
	settled := make(chan []message.Settled)
	go listen(orders, settled) // until the process ends
	s.begin(*first.Run)
	s.serve(settled)
	return 0
}

// listen forwards results of calls. A host that has gone needs no answer.
func listen(orders *message.Reader, settled chan<- []message.Settled) {
	for {
		var order message.Order
		if orders.Read(&order) != nil {
			os.Exit(0)
		}
		settled <- order.Settled
	}
}

// serve goes on with the script, as its calls and timers end, until it has ended.
func (s *script) serve(settled <-chan []message.Settled) {
	for !s.ended {
		var due <-chan time.Time
		switch {
		case len(s.timers) > 0:
			due = time.After(time.Until(s.timers[0].due))
		case s.underWay == 0:
			s.end(message.End{Failed: true, Error: s.stuck()})
			return
		}
		select {
		case batch := <-settled:
			s.settle(append(batch, more(settled)...))
		case <-due:
			s.fire()
		}
	}
}

// stuck returns the reason of a script that has not ended but waits for nothing.
func (s *script) stuck() string {
	// If memory ran out, some is free again by now, but not for half as much again as a growing
	// array has.
	if _, err := s.vm.Eval("new ArrayBuffer(1 << 26); 0", quickjs.EvalGlobal); err != nil {
		return describeError(noMemory, "", "")
	}
	return "Error: the script waits for what cannot come: no call is under way and no timer is set."
}

// more returns the results already available.
func more(settled <-chan []message.Settled) (all []message.Settled) {
	for {
		select {
		case batch := <-settled:
			all = append(all, batch...)
		default:
			return all
		}
	}
}

// outbox collects reports and writes them in few pieces.
type outbox struct {
	mu    sync.Mutex
	to    io.Writer
	next  message.Report
	bytes int
	over  bool
}

// maxGathered is how many bytes are gathered before they are written.
const maxGathered = 1 << 20

func (o *outbox) add(bytes int, change func(*message.Report)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.next)
	if o.bytes += bytes; o.bytes >= maxGathered {
		o.write()
	}
}

func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write()
}

// end tells of the end, once.
func (o *outbox) end(end message.End) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next.End = &end
	o.write()
	o.over = true
}

func (o *outbox) write() {
	if o.over || o.next.Empty() {
		return
	}
	if err := message.Write(o.to, o.next); err != nil {
		os.Exit(1) // nobody listens
	}
	o.next, o.bytes = message.Report{}, 0
}

// stopped is the panic of a host function that ends the script, uncatchable for it.
type stopped struct{ message.End }

// turn lets the script compute until it waits, and reports its actions.
func (s *script) turn(do func() error) {
	most := min(s.busy, maxComputed-s.computed)
	began := time.Now()
	overdue := message.End{Failed: true, Error: fmt.Sprintf("Error: the script computed for %.0f s without waiting for anything, and was ended.", s.busy.Seconds())}
	if most < s.busy {
		overdue.Error = fmt.Sprintf("Error: the script computed for %.0f minutes in all, and was ended.", maxComputed.Minutes())
	}
	watch := time.AfterFunc(most+grace, func() {
		s.outbox.end(overdue)
		os.Exit(0)
	})
	defer watch.Stop()
	stopTelling := s.tell()
	end := s.compute(do, began.Add(most))
	stopTelling()
	s.computed += time.Since(began)
	switch {
	case end != nil:
		s.end(*end)
	case time.Since(began) >= most:
		s.end(overdue)
	default:
		s.outbox.flush()
	}
}

// tell reports the script's actions while it computes, until stop.
func (s *script) tell() (stop func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		often := time.NewTicker(tellEvery)
		defer often.Stop()
		for {
			select {
			case <-often.C:
				s.outbox.flush()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}

// compute runs JavaScript and all pending jobs. end is nil unless the script ended.
func (s *script) compute(do func() error, until time.Time) (end *message.End) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case stopped:
			end = &value.End
		default:
			panic(value)
		}
	}()
	if err := s.within(until, do); err != nil {
		return failure(err, until)
	}
	for time.Now().Before(until) {
		jobs := 0
		err := s.within(until, func() (err error) {
			jobs, err = s.vm.ExecutePendingJobs()
			return err
		})
		if _, thrown := errors.AsType[*quickjs.Error](err); thrown || jobs == 0 {
			return failure(err, until)
		}
	}
	return nil
}

// within lets JavaScript run until some time.
func (s *script) within(until time.Time, do func() error) error {
	if err := s.vm.SetEvalTimeout(max(time.Until(until), time.Millisecond)); err != nil {
		return err
	}
	return do()
}

// failure returns the end for an error that the script did not receive, or nil for an interruption.
func failure(err error, until time.Time) *message.End {
	if err == nil || !time.Now().Before(until) {
		return nil
	}
	return &message.End{Failed: true, Error: err.Error()}
}
