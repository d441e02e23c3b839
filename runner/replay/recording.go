// Package replay replaces model, servers and people of a replayed run by its record.
package replay

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/team"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/question"
)

// Recording has the recorded answers of everything that a replay neither asks nor starts.
type Recording struct {
	Answers *Answers
	Outputs []transcript.ToolFinished
	Calls   extensions.Recorded // with the places of the fresh tree
	Order   *team.RecordedOrder // of the results of waits for agents
}

// Ending returns how the recorded call of a command returned, whatever this machine's speed.
func (r *Recording) Ending(ctx context.Context, call tools.Call) command.RecordedReturn {
	answer, _ := r.Calls.Answer(ctx, call)
	_, ended := answer.Detail["exit_code"]
	return command.RecordedReturn{Ended: ended, Session: int(answer.Session())}
}

// AskNobody returns a function that ignores questions to people. It returns nil if the run did not ask people.
func (r *Recording) AskNobody() func(context.Context, []question.Question) error {
	if !r.Answers.askedPeople {
		return nil
	}
	return func(context.Context, []question.Question) error { return nil }
}

// ReadRecording reads the run's answers and calls for a replay in tree. to is the replay's record. The run's
// paths are replaced by the replay's.
func (o *Original) ReadRecording(to *record.Record, tree *workspace.Workspace) (*Recording, error) {
	paths := o.workTreePaths(tree)
	pathsInJSON := make([]string, len(paths))
	for i, path := range paths {
		pathsInJSON[i] = escapeForJSON(path)
	}
	return (&reader{o, to, strings.NewReplacer(paths...), strings.NewReplacer(pathsInJSON...)}).readRecording()
}

// reader reads a run's recording.
type reader struct {
	run          *Original
	replayRecord *record.Record    // of the replay
	pathsInText  *strings.Replacer // of the run's paths by the replay's
	pathsInJSON  *strings.Replacer // of the same inside of JSON strings
}

// readRecording reads the recorded answers and calls.
func (r *reader) readRecording() (*Recording, error) {
	recording := &Recording{
		Answers: r.emptyAnswers(), Order: team.NewRecordedOrder(),
		Calls: extensions.Recorded{Answers: map[transcript.CallRef]transcript.ToolFinished{}},
	}
	_, err := r.run.Record.FoldEvents(func(_ *transcript.View, e transcript.Event) error { return r.addEvent(recording, e) })
	if err != nil {
		return nil, err
	}
	for _, server := range r.run.MCPServers {
		if server.File == "" {
			continue
		}
		list, err := extensions.ReadList(r.run.Record.Directory, server)
		if err != nil {
			return nil, err
		}
		recording.Calls.Lists = append(recording.Calls.Lists, list)
	}
	return recording, nil
}

// emptyAnswers returns Answers for the run's model, agents and hooks, as yet without answers of the model.
func (r *reader) emptyAnswers() *Answers {
	answers := &Answers{
		failuresBefore: make(map[int][]*model.Failure), askedPeople: assembly.AskedPeople(&r.run.Job, r.run.Warnings), prices: r.run.Prices(),
		subagents: answersByAgent{}, scripted: r.run.Started.Scripted != "",
	}
	for _, a := range r.run.Subagents {
		answers.subagents.forAgent(a.ID).endsWaiting = a.Status != agents.Completed
	}
	if len(r.run.StartHooks.Hooks) > 0 {
		hookAnswers := r.run.HookAnswers // those of a resumed run; a replay starts anew
		hookAnswers.ReplaceQuestions, hookAnswers.StopRounds, hookAnswers.PendingRequest = true, 0, ""
		answers.Hooks = &hooks.Hooks{All: hooks.FromTranscript(r.run.StartHooks), Record: r.replayRecord, Answers: hookAnswers}
	}
	return answers
}

// addEvent adds the answer or call in an event to the recording.
func (r *reader) addEvent(recording *Recording, e transcript.Event) (err error) {
	answers := recording.Answers
	if agent := e.Subagent(); agent != "" {
		answers = answers.subagents.forAgent(agent)
	}
	recording.Order.Apply(e)
	switch d := e.Content.(type) {
	case transcript.ModelResponse:
		if d.Internal {
			return nil
		}
		for i := range d.Output {
			d.Output[i] = []byte(r.pathsInJSON.Replace(string(d.Output[i])))
		}
		answers.answers = append(answers.answers, &model.Response{ID: d.ID, Status: d.Status, Output: d.Output, Usage: d.Usage})
	case transcript.ModelFallback:
		before := len(answers.answers)
		answers.failuresBefore[before] = append(answers.failuresBefore[before], &model.Failure{Kind: model.Kind(d.Reason), Message: d.Message, Permanent: true})
	case transcript.ToolStarted:
		d.Input = r.pathsInText.Replace(d.Input)
		recording.Calls.Nested.Add(d)
	case transcript.ToolFinished:
		recording.Outputs = append(recording.Outputs, d)
		d.Output = r.pathsInText.Replace(d.Output)
		d.ScriptValue, err = r.replacePathsInJSON(d.ScriptValue)
		recording.Calls.Answers[d.Ref()] = d
	}
	return err
}

// replacePathsInJSON replaces the run's paths by the replay's in a JSON value.
func (r *reader) replacePathsInJSON(value any) (named any, err error) {
	raw, err := json.Marshal(value)
	if err == nil {
		raw = []byte(r.pathsInJSON.Replace(string(raw)))
		err = json.Unmarshal(raw, &named)
	}
	return named, err
}

// escapeForJSON escapes a text for the inside of a JSON string. An unusable text becomes one that matches
// nothing.
func escapeForJSON(s string) string {
	raw, err := json.Marshal(s)
	if err != nil || len(s) < 2 {
		return "\x00" // stands nowhere in JSON
	}
	return string(raw[1 : len(raw)-1])
}
