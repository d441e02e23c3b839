package actions

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
)

type Step struct {
	Log *Log
	// MayMask is set if nobody but the runner reads the log, so secret values may be written to it
	// for masking.
	MayMask     bool
	OutputFile  string // GITHUB_OUTPUT; empty where the runner has none
	SummaryFile string // GITHUB_STEP_SUMMARY, likewise
}

// The runner's limits, in bytes: 1 MiB for all outputs of a job, 1 MiB for a
// step's summary
// (https://docs.github.com/actions/reference/limits). An output gets a part of it.
const (
	MaxOutputBytes  = 64 << 10
	maxSummaryBytes = 1000 << 10
)

// SetOutput sets an output of the step. It cuts the end off an overlong value. The delimiter is
// random and never in the value: with a known one, a value could end itself and set other outputs.
func (s *Step) SetOutput(name, value string) error {
	if s.OutputFile == "" {
		return nil
	}
	value = clip.Start(value, MaxOutputBytes)
	delimiter := rand.Text()
	for strings.Contains(value, delimiter) {
		delimiter = rand.Text()
	}
	if err := appendToFile(s.OutputFile, name+"<<"+delimiter+"\n"+value+"\n"+delimiter+"\n"); err != nil {
		return fmt.Errorf("the step's outputs (GITHUB_OUTPUT): %w", err)
	}
	return nil
}

// AddSummary appends Markdown to the step's summary page, cut to maxSummaryBytes.
func (s *Step) AddSummary(markdown string) error {
	if s.SummaryFile == "" {
		return nil
	}
	if err := appendToFile(s.SummaryFile, clip.Start(markdown, maxSummaryBytes)+"\n"); err != nil {
		return fmt.Errorf("the step's summary (GITHUB_STEP_SUMMARY): %w", err)
	}
	return nil
}

// pipeTime limits how long writing a text to a pipe may take.
const pipeTime = 10 * time.Second

// appendToFile appends a text to a file. It does not wait for a reader of a named pipe.
func appendToFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_ = f.SetWriteDeadline(time.Now().Add(pipeTime)) // regular files have no deadline and need none
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
