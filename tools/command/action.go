package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// notStartedCode is the exit code of a command that was refused or could not start, as in a shell.
const notStartedCode = 126

// maxCharacters limits max_output_length to avoid an overflow. It is far more than any output has.
const maxCharacters = 1 << 40

// shellAction parses a shell_call of the Responses API and returns its commands. Each runs in its own shell. Numbers in the
// call may be null.
func (t *Tools) shellAction(call tools.Call) ([]commandRequest, error) {
	var a struct {
		Commands        []string `json:"commands"`
		TimeoutMS       float64  `json:"timeout_ms"`        // for each command
		MaxOutputLength float64  `json:"max_output_length"` // in characters, for all commands together
	}
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	if len(a.Commands) == 0 {
		return nil, errors.New("it has no commands")
	}
	budget := tools.AskedTokens(float64(tools.Tokens(int64(min(max(a.MaxOutputLength, 0), maxCharacters)))))
	all := make([]commandRequest, len(a.Commands))
	for i, command := range a.Commands {
		all[i] = commandRequest{
			callID: call.ID, argv: t.shellArgv("", false, command), script: command, limit: t.timeLimit(a.TimeoutMS, defaultTimeout), budget: budget,
		}
	}
	return all, nil
}

// localShellAction parses a local_shell_call of the Responses API and returns its single command.
func (t *Tools) localShellAction(call tools.Call) ([]commandRequest, error) {
	var a struct {
		Type             string            `json:"type"`
		Command          []string          `json:"command"`
		Env              map[string]string `json:"env"`
		TimeoutMS        float64           `json:"timeout_ms"`
		User             string            `json:"user"`
		WorkingDirectory string            `json:"working_directory"`
	}
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	switch {
	case a.Type != "exec":
		return nil, fmt.Errorf("%q is no type of action; it is exec", a.Type)
	case len(a.Command) == 0:
		return nil, errors.New("its command is empty")
	case a.User != "":
		return nil, errors.New("commands run as the user of this run only; leave user out")
	}
	request := commandRequest{callID: call.ID, argv: a.Command, workdir: a.WorkingDirectory, limit: t.timeLimit(a.TimeoutMS, defaultTimeout)}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("%q is no name of a variable", name)
		}
		request.env = append(request.env, name+"="+a.Env[name])
	}
	return []commandRequest{request}, nil
}

// runActions runs the commands of a shell_call or local_shell_call one after the other, even if earlier ones fail.
func (t *Tools) runActions(ctx context.Context, all []commandRequest) (tools.Result, error) {
	result := tools.Result{Budget: all[0].budget}
	var details []map[string]any
	for _, request := range all {
		ran, err := t.run(ctx, request)
		if err != nil {
			for _, earlier := range result.Commands { // their outputs get into no result
				if earlier.Printed != nil {
					_ = earlier.Printed.Close()
				}
			}
			return tools.Result{Output: ran.Output, Printed: ran.Printed}, err
		}
		if refusal := cmp.Or(ran.refusal, ran.problem); refusal != "" {
			ran.Output, ran.ExitCode = refusal, notStartedCode
			ran.detail = map[string]any{"exit_code": notStartedCode}
		}
		result.Commands = append(result.Commands, ran.Ran)
		result.Failed = result.Failed || ran.ExitCode != 0
		details = append(details, ran.detail)
	}
	result.Detail = details[0]
	if len(details) > 1 {
		result.Detail = map[string]any{"commands": details}
	}
	return result, nil
}
