package tools

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hook answers by what a test gives it and notes what it is asked.
type hook struct {
	before func() (string, error)
	after  func(Finished) (string, error)
	asked  []string
}

func (h *hook) Before(_ context.Context, tool string, call Call) (string, error) {
	h.asked = append(h.asked, "before "+tool+" "+call.Input)
	if h.before == nil {
		return "", nil
	}
	return h.before()
}

func (h *hook) After(_ context.Context, ended Finished) (string, error) {
	h.asked = append(h.asked, "after "+ended.Tool+" "+ended.Result.Output)
	if h.after == nil {
		return "", nil
	}
	return h.after(ended)
}

func says(words string) func() (string, error) { return func() (string, error) { return words, nil } }

func TestHooks(t *testing.T) {
	broken := errors.New("no such program")
	secret := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	for _, test := range []struct {
		name   string
		hooks  []*hook
		want   string
		failed bool
		ran    bool
		asked  []string // of the last hook
	}{
		{"that say nothing", []*hook{{}}, "done", false, true, []string{`before exec_command {"cmd":"ls"}`, "after exec_command done"}},
		{"that refuse", []*hook{{before: says("not today")}, {}}, "not today", true, false, nil},
		{"that fail before", []*hook{{before: func() (string, error) { return "", broken }}}, "exec_command failed: the call was not run: a hook failed: no such program", true, false, []string{`before exec_command {"cmd":"ls"}`}},
		{"that panic before", []*hook{{before: func() (string, error) { panic("boom") }}}, "exec_command failed: the call was not run: a hook broke down. This is a fault of agent-ci, not of the call; try another way", true, false, []string{`before exec_command {"cmd":"ls"}`}},
		{"that add words", []*hook{{after: func(Finished) (string, error) { return "Formatted a.go, hunter2.\n", nil }}, {after: func(Finished) (string, error) { return "Second.", nil }}}, "Formatted a.go, ***.\nSecond.\ndone", false, true, []string{`before exec_command {"cmd":"ls"}`, "after exec_command done"}},
		{"that fail after", []*hook{{after: func(Finished) (string, error) { return "", broken }}}, "Note: after the call a hook failed: no such program\ndone", false, true, []string{`before exec_command {"cmd":"ls"}`, "after exec_command done"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ran := false
			d := dispatcher(fake{name: "exec_command", parameters: `{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}`, run: func(context.Context, Call) (Result, error) {
				ran = true
				return Result{Output: "done"}, nil
			}})
			d.Outputs = &Outputs{Redact: secret}
			for _, h := range test.hooks {
				d.Hooks = append(d.Hooks, h)
			}
			r := d.Dispatch(t.Context(), []Call{{ID: "1", Name: "bash", Input: `{"command":"ls"}`}})[0]
			if r.Output != test.want || r.Failed != test.failed || ran != test.ran {
				t.Errorf("ran %t, got %+v", ran, r)
			}
			if diff := cmp.Diff(test.asked, test.hooks[len(test.hooks)-1].asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHooksAreNotAskedOfCallsThatDontFit(t *testing.T) {
	h := new(hook)
	d := dispatcher(fake{name: "look", parameters: `{"type":"object","required":["x"]}`})
	d.Hooks = []Hook{h}
	d.Dispatch(t.Context(), calls("look", "nothing"))
	if len(h.asked) > 0 {
		t.Errorf("asked %q", h.asked)
	}
}

func TestWordsOfAHookStandBeforeTheFirstCommand(t *testing.T) {
	d := dispatcher(fake{name: "shell", run: func(context.Context, Call) (Result, error) {
		return Result{Commands: []Ran{{Output: "one"}, {Output: "two"}}}, nil
	}})
	d.Hooks = []Hook{&hook{after: func(Finished) (string, error) { return "Mind.", nil }}}
	r := d.Dispatch(t.Context(), []Call{{ID: "1", Name: "shell", Input: "{}", Form: ShellAction}})[0]
	if r.Commands[0].Output != "Mind.\none" || r.Commands[1].Output != "two" || !strings.HasPrefix(r.Output, "Mind.\nExit code: 0\n") {
		t.Errorf("got %+v", r)
	}
}
