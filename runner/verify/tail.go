package verify

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// show has a row tell of the last run of its check.
func (c Checks) show(row *transcript.VerifyRow, ran confine.Ran, log string) (err error) {
	row.Seconds, row.Log = ran.Seconds, log
	row.Tail, err = c.tail(ran, log)
	return err
}

// tail is what people are shown of the log of a command that failed, where its file is
// not at hand; empty for one that is green.
func (c Checks) tail(ran confine.Ran, log string) (string, error) {
	if ran.Color() == "green" {
		return "", nil
	}
	lines, err := c.Record.LastLines(log)
	if err != nil {
		return "", fmt.Errorf("read the end of %s: %w", log, err)
	}
	return lines, nil
}
