package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

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
