package outcome

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// ForError returns the outcome for an error that ended a run. In this order: the Stop in err, the cause of
// an ended ctx (a signal or the deadline), a resource shortage of the machine, an internal error. A
// shortage of memory or open files comes before a Stop, because it is the cause of the Stop.
func ForError(ctx context.Context, err error) *Stop {
	shortage := shortageIn(err)
	stop, isStop := errors.AsType[*Stop](err)
	shortageFirst := shortage != nil && shortage.reason != diskFull
	if isStop && stop.Outcome != InternalError && !shortageFirst {
		return stop
	}
	if ctx.Err() != nil {
		contextStop, hasCause := errors.AsType[*Stop](context.Cause(ctx))
		if hasCause && (contextStop.Outcome != BudgetExceeded || isDeadline(err)) {
			return contextStop
		}
	}
	switch {
	case shortage != nil:
		return shortage.stop(err)
	case isStop:
		return stop
	}
	return Stopf(InternalError, "unexpected", "%s; see transcript.jsonl.", Sentence(err.Error())).Because(err)
}

// isDeadline reports whether an error may be a consequence of a context's end.
func isDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

// shortage is a resource of the machine that was used up.
type shortage struct {
	errnos  []error
	reason  string
	message string // a message; %s is the error
}

const diskFull = "disk_full"

var shortages = []shortage{
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, diskFull, "The disk is full: %s; free some."},
	{[]error{syscall.EMFILE, syscall.ENFILE}, "open_files", "No more files can be opened: %s; raise the limit (ulimit -n), or end what keeps files open."},
	{[]error{syscall.ENOMEM}, "memory", "The machine has no memory left: %s; give it more, or end other processes."},
}

// stop returns the outcome for the shortage that caused err. It replaces any other outcome in err.
func (s *shortage) stop(err error) *Stop {
	var stop *Stop
	if errors.As(err, &stop) && stop.Reason == s.reason {
		return stop
	}
	if stop != nil {
		err = cmp.Or(errors.Unwrap(stop), err)
	}
	return Stopf(InternalError, s.reason, s.message, WithoutFullStop(err)).Because(err)
}

// shortageIn returns the shortage that caused an error, or nil.
func shortageIn(err error) *shortage {
	for i, l := range shortages {
		if slices.ContainsFunc(l.errnos, func(number error) bool { return errors.Is(err, number) }) {
			return &shortages[i]
		}
	}
	return nil
}

// WithoutPath returns the error without its path, for a message that names the path already.
func WithoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// WithoutFullStop returns an error's text without a full stop, as the end of a sentence.
func WithoutFullStop(err error) string {
	return strings.TrimSuffix(strings.TrimSpace(err.Error()), ".")
}

// MessageOf returns an error's text for people, without a full stop. A Stop gives its message.
func MessageOf(err error) string {
	if stop, isStop := errors.AsType[*Stop](err); isStop {
		return strings.TrimSuffix(stop.Message, ".")
	}
	return WithoutFullStop(err)
}

// Sentence returns a text with a capital at the start and no full stop at the end. A first word that looks
// like a path or a name, such as go.mod, stays as it is.
func Sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	first, size := utf8.DecodeRuneInString(text)
	word, _, _ := strings.Cut(text, " ")
	if size == 0 || strings.ContainsAny(strings.TrimRight(word, ":;,."), `/\._:=@#`) {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
