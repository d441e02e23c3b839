package runner

import (
	"cmp"
	"errors"
	"slices"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// lack is something that the machine has too little of.
type lack struct {
	numbers []error
	reason  string
	words   string // with what went wrong put in
}

const diskFull = "disk_full"

var lacks = []lack{
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, diskFull, "The disk is full: %s; free some."},
	{[]error{syscall.EMFILE, syscall.ENFILE}, "open_files", "No more files can be opened: %s; raise the limit (ulimit -n), or end what keeps files open."},
	{[]error{syscall.ENOMEM}, "memory", "The machine has no memory left: %s; give it more, or end other processes."},
}

// stop is the outcome of a run that met a lack, maybe taken for something else.
func (l *lack) stop(err error) *outcome.Stop {
	var stop *outcome.Stop
	if errors.As(err, &stop) && stop.Reason == l.reason {
		return stop
	}
	if stop != nil {
		err = cmp.Or(errors.Unwrap(stop), err)
	}
	return outcome.Stopf(outcome.InternalError, l.reason, l.words, trimmed(err)).Because(err)
}

// lackIn is what an error comes from; nil where it is no lack.
func lackIn(err error) *lack {
	for i, l := range lacks {
		if slices.ContainsFunc(l.numbers, func(number error) bool { return errors.Is(err, number) }) {
			return &lacks[i]
		}
	}
	return nil
}
