package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// How long a poll waits, as the reference implementation has it.
const (
	leastPoll = 5 * time.Second
	mostPoll  = 5 * time.Minute
)

// interrupt is what Ctrl-C sends.
const interrupt = "\x03"

var stdinSpec = tools.Spec{
	Name: "write_stdin",
	Description: `Waits for a session of exec_command and returns what it printed since. Leave chars empty to poll; "\u0003" interrupts the command. ` +
		`Sessions have no terminal, so nothing else can be written.`,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"session_id":{"type":"number","description":"Session ID that exec_command gave."},` +
		`"chars":{"type":"string","description":"Empty to poll, or \"\\u0003\" to interrupt."},` +
		`"yield_time_ms":{"type":"number","description":"How long to wait for the command to exit, in milliseconds: a poll 5000 to 300000, by default 5000."},` +
		`"max_output_tokens":{"type":"number","description":"Most tokens of output to return."}` +
		`},"required":["session_id"],"additionalProperties":false}`),
}

// writeStdin is write_stdin.
type writeStdin struct{ *Tools }

type stdinArguments struct {
	SessionID float64 `json:"session_id"`
	Chars     string  `json:"chars"`
	YieldMS   float64 `json:"yield_time_ms"`
	MaxTokens float64 `json:"max_output_tokens"`
}

func (writeStdin) Spec() tools.Spec { return stdinSpec }
func (writeStdin) Mutates() bool    { return false }

// Run waits until the session's command has exited or the yield time is over.
// Calls for one session wait for each other. When ctx ends first the command
// goes on; Close ends it.
func (w writeStdin) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a stdinArguments
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return tools.Result{}, fmt.Errorf("read arguments: %w", err)
	}
	began := time.Now()
	s := w.sessions.use(a.SessionID)
	if s == nil {
		return tools.Refuse(w.unknownSession(a.SessionID)), nil
	}
	if a.Chars != "" && a.Chars != interrupt {
		return tools.Refuse("write_stdin failed: stdin is closed for this session, as it has no terminal. " +
			"Poll it with empty chars, or run the command again with its input given by a file, a pipe or a here-document"), nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
	if a.Chars == interrupt {
		s.process.Interrupt()
	}
	ended, err := s.await(ctx, a.patience())
	if err != nil {
		return tools.Result{Printed: s.output.Take()}, err
	}
	p := part{callID: call.ID, took: time.Since(began), budget: a.MaxTokens}
	if !ended {
		return p.ongoing(s), nil
	}
	w.sessions.remove(s)
	return p.last(s.running)
}

func (a stdinArguments) patience() time.Duration {
	if a.Chars == "" {
		return clampMS(a.YieldMS, leastPoll, mostPoll)
	}
	return clampMS(a.YieldMS, leastYield, mostYield)
}

func (t *Tools) unknownSession(id float64) string {
	refusal := fmt.Sprintf("write_stdin failed: Unknown process id %v", id)
	live := t.sessions.ids()
	if len(live) == 0 {
		return refusal + ". No session is running"
	}
	return refusal + ". The sessions are " + strings.Trim(fmt.Sprint(live), "[]")
}
