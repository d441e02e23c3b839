package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// Print writes a line to standard output. It shows control characters of hostile texts as symbols or numbers.
func (p Process) Print(format string, args ...any) { printLine(p.Stdout, format, args) }

// Note is Print for standard error.
func (p Process) Note(format string, args ...any) { printLine(p.Stderr, format, args) }

func printLine(w io.Writer, format string, args []any) {
	fmt.Fprintln(w, progress.Printable(fmt.Sprintf(format, args...)))
}

// failure is the error of a command that ends with an exit status.
type failure struct {
	status   int
	err      error // nil if the command itself printed why
	isMisuse bool  // a mistake in the command line
}

func (f *failure) Error() string { return fmt.Sprint(f.err) }

// Exit returns an error that ends a command with status. A nil err prints nothing. ExitOK with a nil err is nil.
func Exit(status int, err error) error {
	if status == ExitOK {
		return err
	}
	return &failure{status: status, err: err}
}

// Misuse returns the error for a mistake in the command line.
func Misuse(format string, args ...any) error {
	return &failure{status: ExitInvalid, err: fmt.Errorf(format, args...), isMisuse: true}
}

// Report prints the error of the command called name, and returns the exit status.
func (p Process) Report(name string, err error) int {
	if err == nil {
		return ExitOK
	}
	f, is := errors.AsType[*failure](err)
	if !is {
		if errors.Is(err, context.Canceled) {
			err = errors.New("it was stopped by a signal")
		}
		f = &failure{status: ExitFailed, err: err}
	}
	switch {
	case f.err == nil, errors.As(f.err, new(*lostOutput)): // the command printed why, or ReportLoss will
	case f.isMisuse:
		problem := outcome.ShortenNames(f.Error())
		if !strings.HasSuffix(problem, "?") {
			problem += "."
		}
		fmt.Fprintf(p.Stderr, "agent-ci %s: %s\nRun agent-ci %s --help to see its usage.\n", name, problem, name)
	default:
		p.Note("agent-ci %s: %s", name, outcome.ShortenNames(progress.Printable(f.Error())))
	}
	return f.status
}

// Output is a standard output that keeps the error of its first failed write for ReportLoss.
type Output struct {
	io.Writer
	failure atomic.Pointer[lostOutput]
}

// lostOutput is the error of a write to an Output.
type lostOutput struct{ error }

func (e *lostOutput) Unwrap() error { return e.error }

// Write writes to the stream.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err == nil {
		return n, nil
	}
	lost := &lostOutput{err}
	o.failure.CompareAndSwap(nil, lost)
	return n, lost
}

// ReportLoss prints on stderr why output was lost. A reader that closed its pipe wanted no more.
func (o *Output) ReportLoss(stderr io.Writer) {
	if lost := o.failure.Load(); lost != nil && !errors.Is(lost, syscall.EPIPE) {
		fmt.Fprintf(stderr, "agent-ci: standard output is incomplete: %v\n", outcome.WithoutPath(lost.error))
	}
}

// ShowProblems prints the mistakes of a file, or "ok" if there are none.
func ShowProblems(p Process, file string, problems config.Problems) {
	for _, problem := range problems {
		p.Print("%s", problem.String())
	}
	if len(problems) == 0 {
		p.Print("%s: ok", markdown.FileName(file))
	}
}
