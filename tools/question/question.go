// Package question holds the tool request_user_input, with which a model asks people questions. Nobody can answer during the
// run, and the result says so.
package question

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/tools"
)

// Question is a question of the model.
type Question struct {
	ID       string   `json:"id"`
	Header   string   `json:"header"` // a few words for it
	Question string   `json:"question"`
	Options  []Option `json:"options"` // may be empty
}

// Option is a proposed answer.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

var spec = tools.Spec{
	Name: "request_user_input",
	Description: "Asks the user questions. In this run no user is there, and nobody answers: " +
		"decide yourself and state the assumption in your last message.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"questions":{"type":"array","description":"What to ask.","items":{"type":"object","properties":{` +
		`"id":{"type":"string","description":"A short name of the question."},` +
		`"header":{"type":"string","description":"The question in a few words."},` +
		`"question":{"type":"string","description":"The question."},` +
		`"options":{"type":"array","description":"Answers to choose from.","items":{"type":"object","properties":{` +
		`"label":{"type":"string"},"description":{"type":"string"}` +
		`},"required":["label","description"],"additionalProperties":false}}` +
		`},"required":["id","header","question","options"],"additionalProperties":false}}` +
		`},"required":["questions"],"additionalProperties":false}`),
	// This is less strict, because the result does not depend on the questions.
	Accepts: json.RawMessage(`{"type":"object","properties":{` +
		`"questions":{"type":"array","items":{"type":"object","properties":{` +
		`"id":{"type":"string"},"header":{"type":"string"},"question":{"type":"string"},` +
		`"options":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"description":{"type":"string"}},"required":["label"]}}` +
		`},"required":["question"]}}` +
		`},"required":["questions"]}`),
}

const (
	nobody = "request_user_input: nobody is there to answer; this run has no user. Decide now, by yourself: " +
		"take what the task, the code and its tests make most likely, and of equal choices the one that is easiest to undo. " +
		"Go on with the work, and state each such assumption in your last message, so that a person can check it."
	passed = "The questions were handed on. Nobody answers them during this run: finish what does not depend on them, " +
		"and say in your last message what is open."
)

// New returns the tool request_user_input. pass sends the questions to people, who answer after the run. If it returns an
// error, the call fails. Nil means that nobody answers, and the model must decide itself.
func New(pass func(context.Context, []Question) error) tools.Tool {
	type arguments struct {
		Questions []Question `json:"questions"`
	}
	return tools.Tool{Spec: spec, Mutates: pass != nil, Run: tools.Decoded(func(ctx context.Context, _ tools.Call, a arguments) (tools.Result, error) {
		if len(a.Questions) == 0 {
			return tools.Refuse("request_user_input: questions is empty"), nil
		}
		if pass == nil {
			return tools.Refuse(nobody), nil
		}
		if err := pass(ctx, a.Questions); err != nil {
			return tools.Result{}, fmt.Errorf("hand on the questions: %w", err)
		}
		return tools.Result{Output: passed, Detail: map[string]any{"questions": a.Questions}}, nil
	})}
}
