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

// ForError returns the outcome for an error that ended a run. If ctx has ended, its cause decides: a
// signal or the deadline. A shortage of the machine, such as a full disk, decides over most others.
func ForError(ctx context.Context, err error) *Stop {
	shortage := shortageIn(err)
	own, hasOwn := errors.AsType[*Stop](err)
	hidesShortage := shortage != nil && shortage.reason != diskFull
	if hasOwn && own.Outcome != InternalError && !hidesShortage {
		return own
	}
	if ctx.Err() != nil {
		ofContext, isStop := errors.AsType[*Stop](context.Cause(ctx))
		if isStop && (ofContext.Outcome != BudgetExceeded || isDeadline(err)) {
			return ofContext
		}
	}
	switch {
	case shortage != nil:
		return shortage.stop(err)
	case hasOwn:
		return own
	}
	return Stopf(InternalError, "unexpected", "%s; see transcript.jsonl.", Sentence(err.Error())).Because(err)
}

// isDeadline reports whether an error may come from the end of the time. Other errors have a cause
// of their own.
func isDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

// shortage is something that the machine has run out of.
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

// stop returns the outcome for a shortage. If the error has another outcome, the shortage replaces
// it.
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

// WithoutPath returns the error without the path, because the sentence around it names the path.
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
	if stop := (*Stop)(nil); errors.As(err, &stop) {
		return strings.TrimSuffix(stop.Message, ".")
	}
	return WithoutFullStop(err)
}

// Sentence returns a text with a capital at the start and no full stop at the end.
func Sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// CountNoun returns a number with its noun, such as "2 files".
func CountNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
