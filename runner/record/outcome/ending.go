package outcome

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Of is the outcome that an error of a stage stands for. Its cause decides where
// ctx has ended: a signal or a deadline.
func Of(ctx context.Context, err error) *Stop {
	var stop *Stop
	cause := context.Cause(ctx)
	lack := lackIn(err)
	switch {
	case errors.As(err, &stop) && stop.Outcome != InternalError && (lack == nil || lack.reason == diskFull):
		return stop
	case ctx.Err() != nil && errors.As(cause, &stop) && (stop.Outcome != BudgetExceeded || isDeadline(err)):
		return stop
	case lack != nil:
		return lack.stop(err)
	case errors.As(err, &stop):
		return stop
	}
	return Stopf(InternalError, "unexpected", "%s; see transcript.jsonl.", Sentence(err.Error())).Because(err)
}

// isDeadline says whether an error is what the end of the time makes of work that
// it breaks off. What else fails by then has failed for a reason of its own.
func isDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

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
func (l *lack) stop(err error) *Stop {
	var stop *Stop
	if errors.As(err, &stop) && stop.Reason == l.reason {
		return stop
	}
	if stop != nil {
		err = cmp.Or(errors.Unwrap(stop), err)
	}
	return Stopf(InternalError, l.reason, l.words, Trimmed(err)).Because(err)
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

// RootCause is an error's own words without the path that the sentence around it
// names.
func RootCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Trimmed is an error's text without a full stop, for the end of a sentence.
func Trimmed(err error) string { return strings.TrimSuffix(strings.TrimSpace(err.Error()), ".") }

// Said is what an error says to people, without a full stop: the message of a Stop, else its text.
func Said(err error) string {
	if stop := (*Stop)(nil); errors.As(err, &stop) {
		return strings.TrimSuffix(stop.Message, ".")
	}
	return Trimmed(err)
}

// Sentence makes an error's text one: a capital at the start, no full stop at
// the end.
func Sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Counted is a number of things in a message.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
