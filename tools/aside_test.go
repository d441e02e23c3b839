package tools

import (
	"context"
	"strings"
	"testing"
)

func TestPrependsRedactedText(t *testing.T) {
	secret := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	for _, test := range []struct{ name, words, want string }{
		{"none", "", "done"},
		{"some", "Refused a.example, hunter2.", "Refused a.example, ***.\ndone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := dispatcher(fake{name: "exec_command", run: func(context.Context, Call) (Result, error) { return Result{Output: "done"}, nil }})
			d.Outputs = &Outputs{Redact: secret}
			d.TextBefore = func() string { return test.words }
			r := d.Dispatch(t.Context(), []Call{{ID: "1", Name: "bash", Input: "{}"}})[0]
			if r.Output != test.want || r.Failed {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestInvalidCallsTakeNoTextBefore(t *testing.T) {
	d := dispatcher(fake{name: "look", parameters: `{"type":"object","required":["x"]}`})
	d.TextBefore = func() string {
		t.Error("asked")
		return ""
	}
	d.Dispatch(t.Context(), calls("look", "nothing"))
}

func TestTextBeforePrecedesFirstCommand(t *testing.T) {
	d := dispatcher(fake{name: "shell", run: func(context.Context, Call) (Result, error) {
		return Result{Commands: []Ran{{Output: "one"}, {Output: "two"}}}, nil
	}})
	d.TextBefore = func() string { return "Mind." }
	r := d.Dispatch(t.Context(), []Call{{ID: "1", Name: "shell", Input: "{}", Form: ShellAction}})[0]
	if r.Commands[0].Output != "Mind.\none" || r.Commands[1].Output != "two" || !strings.HasPrefix(r.Output, "Mind.\nExit code: 0\n") {
		t.Errorf("got %+v", r)
	}
}
