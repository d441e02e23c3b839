package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// How long a poll waits. The reference implementation has the same values.
const (
	minPoll = 5 * time.Second
	maxPoll = 5 * time.Minute
)

// interrupt is the character that Ctrl-C types.
const interrupt = "\x03"

var stdinSpec = tools.Spec{
	Name: "write_stdin",
	Description: `Writes to a session of exec_command, waits for it and returns what it printed since. Leave chars empty to poll; "\u0003" interrupts the command. ` +
		`Anything else can be written only where exec_command got tty: true.`,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"session_id":{"type":"number","description":"Session ID that exec_command gave."},` +
		`"chars":{"type":"string","description":"What to type, with \"\\n\" for the Enter key; empty to poll, \"\\u0003\" to interrupt. Defaults to empty."},` +
		`"yield_time_ms":{"type":"number","description":"How long to wait for the command to exit, in milliseconds: 250 to 30000, by default 250; a poll 5000 to 300000, by default 5000."},` +
		`"max_output_tokens":{"type":"number","description":"Most tokens of output to return."}` +
		`},"required":["session_id"],"additionalProperties":false}`),
	Returns: returns,
}

type stdinArguments struct {
	SessionID float64 `json:"session_id"`
	Chars     string  `json:"chars"`
	YieldMS   float64 `json:"yield_time_ms"`
	MaxTokens float64 `json:"max_output_tokens"`
}

// writeStdin runs write_stdin: it types into a session, and waits until the command exits or the yield time is over.
// Calls for the same session run one after the other. If ctx ends, the command continues until Close.
func (t *Tools) writeStdin(ctx context.Context, call tools.Call, a stdinArguments) (tools.Result, error) {
	began := time.Now()
	s := t.sessions.markUsed(a.SessionID)
	if s == nil {
		return tools.Refuse(t.unknownSession(a.SessionID)), nil
	}
	if !s.tty && a.Chars != "" && a.Chars != interrupt {
		return tools.Refuse("write_stdin failed: stdin is closed for this session; rerun exec_command with tty=true to keep stdin open, " +
			"or give the command its input by a file, a pipe or a here-document"), nil
	}
	select {
	case s.pollToken <- struct{}{}:
		defer func() { <-s.pollToken }()
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
	until := time.Now().Add(a.waitLimit())
	writeErr := s.write(ctx, a.Chars, until)
	ended, err := t.waitModeFor(ctx, call, time.Until(until)).await(ctx, s.runningCommand)
	if err != nil {
		return tools.Result{Printed: s.output.Take()}, err
	}
	p := report{callID: call.ID, duration: time.Since(began), budget: tools.AskedTokens(a.MaxTokens)}
	switch {
	case !ended && writeErr != nil:
		return tools.Refuse("write_stdin failed: " + writeErr.Error()), nil
	case !ended:
		return p.runningResult(s), nil
	}
	t.sessions.remove(s)
	return p.endResult(s.runningCommand)
}

// write types chars into the session's terminal, up to the time until. Without a terminal, chars is a Ctrl-C, for which
// the command gets the signal SIGINT.
func (s *session) write(ctx context.Context, chars string, until time.Time) error {
	switch {
	case chars == "":
		return nil
	case !s.tty:
		s.process.Signal(syscall.SIGINT)
		return nil
	}
	ctx, stop := context.WithDeadline(ctx, until)
	defer stop()
	return s.process.Type(ctx, chars)
}

// waitLimit returns how long the call waits for the command to exit.
func (a stdinArguments) waitLimit() time.Duration {
	if a.Chars == "" {
		return tools.Milliseconds(a.YieldMS, minPoll, maxPoll)
	}
	return tools.Milliseconds(a.YieldMS, minYield, maxYield)
}

// unknownSession returns the refusal for a session number that does not exist.
func (t *Tools) unknownSession(id float64) string {
	refusal := fmt.Sprintf("write_stdin failed: Unknown process id %v", id)
	live := t.sessions.ids()
	if len(live) == 0 {
		return refusal + ". No session is running"
	}
	return refusal + ". The sessions are " + strings.Trim(fmt.Sprint(live), "[]")
}
