package question_test

import (
	"context"
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/question"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

const asked = `{"questions":[{"id":"db","header":"Database","question":"Which one?","options":[{"label":"SQLite","description":"small"}]}]}`

func TestReportsThatNobodyAnswers(t *testing.T) {
	for name, input := range map[string]string{
		"request_user_input": asked,
		"AskUserQuestion":    `{"questions":[{"question":"Which one?","header":"DB","multiSelect":false,"options":[{"label":"a","description":"b"}]}]}`,
		"ask_user":           `{"question":"Which one?"}`,
	} {
		must.Contain(t, toolstest.Failure(t, toolstest.Call(t.Context(), question.New(nil), name, input)), "nobody is there to answer", "state each such assumption")
	}
}

func TestForwardsQuestions(t *testing.T) {
	var passed []question.Question
	tool := question.New(func(_ context.Context, questions []question.Question) error {
		passed = questions
		return nil
	})
	must.Contain(t, toolstest.Output(t, toolstest.Call(t.Context(), tool, "request_user_input", asked)), "Nobody answers them during this run")
	want := []question.Question{{ID: "db", Header: "Database", Question: "Which one?", Options: []question.Option{{Label: "SQLite", Description: "small"}}}}
	must.Same(t, want, passed)
	if !tool.Mutates || question.New(nil).Mutates {
		t.Error("only handing on has an effect")
	}
}

func TestRefusals(t *testing.T) {
	broken := question.New(func(context.Context, []question.Question) error { return errors.New("no forge") })
	for _, test := range []struct {
		tool        tools.Tool
		input, want string
	}{
		{question.New(nil), `{"questions":[]}`, "questions is empty"},
		{question.New(nil), `{}`, `expected "questions", got nothing by that name`},
		{question.New(nil), `{"questions":[{"id":"x"}]}`, `expected "question"`},
		{broken, asked, "hand on the questions: no forge"},
	} {
		must.Contain(t, toolstest.Failure(t, toolstest.Call(t.Context(), test.tool, "request_user_input", test.input)), test.want)
	}
}
