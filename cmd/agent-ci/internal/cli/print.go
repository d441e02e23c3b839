package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// Output is a standard output that keeps the error of its first failed write, so that lost output is reported
// whatever the command does.
type Output struct {
	io.Writer
	failure atomic.Pointer[error]
}

// Write writes to the stream.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.failure.CompareAndSwap(nil, &err)
	}
	return n, err
}

// ReportLoss prints on stderr why output was lost. A reader that closed its pipe wanted no more.
func (o *Output) ReportLoss(stderr io.Writer) {
	if err := o.failure.Load(); err != nil && !errors.Is(*err, syscall.EPIPE) {
		fmt.Fprintf(stderr, "agent-ci: standard output is incomplete: %v\n", outcome.WithoutPath(*err))
	}
}

// WriteStatus returns the exit status of a command that only writes to standard output. err is the error of
// that write.
func WriteStatus(err error) int {
	if err != nil {
		return ExitFailed
	}
	return ExitOK
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// PrintFailure prints why a command failed, and returns ExitFailed.
func PrintFailure(p Process, name string, err error) int {
	fmt.Fprintf(p.Stderr, "agent-ci %s: %v\n", name, outcome.ShortenNames(progress.Printable(err.Error())))
	return ExitFailed
}

// ShowProblems prints the mistakes of a file, or "ok" if there are none.
func ShowProblems(p Process, file string, problems config.Problems) {
	for _, problem := range problems {
		fmt.Fprintln(p.Stdout, progress.Printable(problem.String()))
	}
	if len(problems) == 0 {
		fmt.Fprintf(p.Stdout, "%s: ok\n", markdown.FileName(file))
	}
}
