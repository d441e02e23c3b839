package command

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// timedOutCode is the exit code after a time limit, like timeout(1)'s.
const timedOutCode = 124

// report has the facts of one call for its result.
type report struct {
	callID   string
	duration time.Duration
	budget   int // maximum number of output tokens
}

// endResult returns the result of a call whose command has ended.
func (p report) endResult(r *runningCommand) (tools.Result, error) {
	ended, err := r.awaitResult()
	if err != nil {
		return tools.Result{Printed: ended.Printed}, err
	}
	result := p.format(fmt.Sprintf("Process exited with code %d", ended.ExitCode), ended.Output, ended.Printed)
	result.Failed, result.Detail = ended.ExitCode != 0, detailOf(ended)
	object := p.scriptObject(result.Printed)
	object["exit_code"] = ended.ExitCode
	if ended.Output != "" {
		object["warning"] = ended.Output
	}
	result.Object = object
	return result, nil
}

// runningWords is followed by the session ID in the output about a running command.
const runningWords = "Process running with session ID "

// runningResult returns the result of a call whose command is still running as the session s.
func (p report) runningResult(s *session) tools.Result {
	result := p.format(runningWords+strconv.Itoa(s.id), "", s.output.Take())
	result.Detail = map[string]any{"session_id": s.id}
	object := p.scriptObject(result.Printed)
	object["session_id"] = s.id
	result.Object = object
	return result
}

// format returns a result in the layout of the reference implementation, which models know. state is a line such as
// "Process exited with code 0".
func (p report) format(state, warning string, printed *tools.Printed) tools.Result {
	var header strings.Builder
	fmt.Fprintf(&header, "Chunk ID: %s\n", p.chunkID())
	fmt.Fprintf(&header, "Wall time: %.4f seconds\n", p.duration.Seconds())
	fmt.Fprintf(&header, "%s\n", state)
	fmt.Fprintf(&header, "Original token count: %d\n", tools.Tokens(printed.Bytes()))
	fmt.Fprintf(&header, "Output:\n%s", warning)
	return tools.Result{Output: header.String(), Printed: printed, Budget: p.budget}
}

// Waiting returns the call that waits as long as possible for a command, given the output of exec_command or write_stdin.
// runs is false if the output does not say that the command is still running.
func Waiting(output string) (tool string, arguments map[string]any, runs bool) {
	head, _, _ := strings.Cut(output, "Output:\n")
	_, after, runs := strings.Cut(head, "\n"+runningWords)
	number, _, _ := strings.Cut(after, "\n")
	id, err := strconv.Atoi(number)
	return stdinSpec.Name, map[string]any{"session_id": id, "yield_time_ms": maxPoll.Milliseconds()}, runs && err == nil
}

// scriptObject returns the fields of a result for scripts that all results have. The dispatcher adds the output.
func (p report) scriptObject(printed *tools.Printed) map[string]any {
	return map[string]any{
		"chunk_id": p.chunkID(), "wall_time_seconds": p.duration.Seconds(), "original_token_count": tools.Tokens(printed.Bytes()),
	}
}

// returns is the JSON Schema of the results for scripts.
var returns = json.RawMessage(`{"type":"object","properties":{` +
	`"chunk_id":{"type":"string"},` +
	`"exit_code":{"type":"number","description":"Once it has exited."},` +
	`"original_token_count":{"type":"number","description":"Of the output before it was cut."},` +
	`"output":{"type":"string"},` +
	`"session_id":{"type":"number","description":"While it still runs."},` +
	`"wall_time_seconds":{"type":"number"},` +
	`"warning":{"type":"string","description":"What is known of why it failed."}` +
	`},"required":["output","wall_time_seconds"],"additionalProperties":false}`)

// chunkID returns an ID for the output. It depends only on the call's ID, so that replays give equal transcripts.
func (p report) chunkID() string {
	return fmt.Sprintf("%.3x", sha256.Sum256([]byte(p.callID)))
}

// awaitResult waits for the end of the command and returns its result. The result's Output explains a failure, or is "".
func (r *runningCommand) awaitResult() (tools.Ran, error) {
	status, err := r.process.Wait()
	r.timer.Stop()
	ended := tools.Ran{Printed: r.output.Take(), ExitCode: status.ExitCode}
	if err != nil {
		return ended, err
	}
	if r.expired.Load() && status.Signal == syscall.SIGKILL.String() {
		ended.ExitCode, ended.TimedOut = timedOutCode, true
		ended.Output = fmt.Sprintf("command timed out after %d milliseconds\n", r.limit.Milliseconds())
		return ended, nil
	}
	ended.Output = r.sandbox.Explain(r.clues, status)
	return ended, nil
}

// detailOf returns the details of a command's result for the transcript.
func detailOf(ended tools.Ran) map[string]any {
	detail := map[string]any{"exit_code": ended.ExitCode}
	if ended.TimedOut {
		detail["timed_out"] = true
	}
	return detail
}
