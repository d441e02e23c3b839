package tools

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

var (
	execFake = fake{
		name: "exec_command", parameters: `{"type":"object","properties":{"cmd":{"type":"string"},"workdir":{"type":"string"},"yield_time_ms":{"type":"number"}},"required":["cmd"],"additionalProperties":false}`,
		accepts: `{"type":"object","properties":{"cmd":{"type":"string"},"workdir":{"type":"string"},"yield_time_ms":{"type":"number"},"login":{"type":"boolean"}},"required":["cmd"],"additionalProperties":false}`,
	}
	shellFake = fake{name: "shell", parameters: `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"],"additionalProperties":false}`}
	planFake  = fake{name: "update_plan", parameters: `{"type":"object","properties":{"plan":{"type":"array","items":{"type":"object","properties":{"step":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed"]}},"required":["step","status"],"additionalProperties":false}}},"required":["plan"],"additionalProperties":false}`}
	patchFake = fake{name: "apply_patch", grammar: "start: /x/"}
	readFake  = fake{name: "read_file", parameters: `{"type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"number"}},"required":["file_path"],"additionalProperties":false}`}
	listFake  = fake{name: "list_dir", parameters: `{"type":"object","properties":{"dir_path":{"type":"string"}},"required":["dir_path"],"additionalProperties":false}`}
	grepFake  = fake{name: "grep_files", parameters: `{"type":"object","properties":{"pattern":{"type":"string"},"include":{"type":"string"},"path":{"type":"string"},"limit":{"type":"number"},"ignore_case":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`}
	imageFake = fake{name: "view_image", parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`}
)

func TestAcceptsForeignNamesAndArguments(t *testing.T) {
	for _, test := range []struct {
		name     string
		call     Call
		want     string
		freeform bool
	}{
		{"as it should be", Call{Name: "exec_command", Input: `{"cmd":"ls"}`}, `{"cmd":"ls"}`, false},
		{"bash", Call{Name: "Bash", Input: `{"command":"ls","description":"list"}`}, `{"cmd":"ls"}`, false},
		{"container.exec with an argument vector", Call{Name: "container.exec", Input: `{"cmd":["bash","-lc","ls | wc"]}`}, `{"cmd":"ls | wc"}`, false},
		{"words are quoted", Call{Name: "execute", Input: `{"command":["echo","a b","it's"]}`}, `{"cmd":"echo 'a b' 'it'\\''s'"}`, false},
		{"cwd", Call{Name: "exec_command", Input: `{"cmd":"ls","cwd":"a"}`}, `{"cmd":"ls","workdir":"a"}`, false},
		{"what is accepted beyond the spec", Call{Name: "exec_command", Input: `{"cmd":"ls","login":true}`}, `{"cmd":"ls","login":true}`, false},
		{"null stands for nothing", Call{Name: "exec_command", Input: `{"cmd":"ls","workdir":null}`}, `{"cmd":"ls"}`, false},
		{"default permissions", Call{Name: "exec_command", Input: `{"cmd":"ls","sandbox_permissions":"use_default","justification":"x"}`}, `{"cmd":"ls"}`, false},
		{"a prefix rule is noted", Call{Name: "exec_command", Input: `{"cmd":"ls","prefix_rule":["ls"]}`}, "Note: ignored without effect: prefix_rule\n" + `{"cmd":"ls"}`, false},
		{"a script for shell", Call{Name: "shell", Input: `{"command":"ls"}`}, `{"command":["sh","-c","ls"]}`, false},
		{"todos", Call{Name: "TodoWrite", Input: `{"todos":[{"content":"a","status":"pending","id":"1","activeForm":"x"}]}`}, `{"plan":[{"status":"pending","step":"a"}]}`, false},
		{"steps that are words", Call{Name: "plan", Input: `{"steps":["a"]}`}, `{"plan":[{"status":"pending","step":"a"}]}`, false},
		{"todos of another agent", Call{Name: "write_todos", Input: `{"todos":[{"description":"a","status":"completed"}],"merge":true}`}, "Note: ignored without effect: merge\n" + `{"plan":[{"status":"completed","step":"a"}]}`, false},
		{"read", Call{Name: "read", Input: `{"path":"a"}`}, `{"file_path":"a"}`, false},
		{"Read", Call{Name: "Read", Input: `{"file_path":"a","limit":3}`}, `{"file_path":"a","limit":3}`, false},
		{"read of another agent", Call{Name: "view", Input: `{"filePath":"a"}`}, `{"file_path":"a"}`, false},
		{"a namespace in front", Call{Name: "functions.read_file", Input: `{"file_path":"a"}`}, `{"file_path":"a"}`, false},
		{"LS", Call{Name: "LS", Input: `{"path":"/a","ignore":["b"]}`}, "Note: ignored without effect: ignore\n" + `{"dir_path":"/a"}`, false},
		{"LS without a path", Call{Name: "ls", Input: `{}`}, `{"dir_path":"."}`, false},
		{
			"Grep",
			Call{Name: "Grep", Input: `{"pattern":"x","glob":"*.go","-i":true,"head_limit":5,"output_mode":"content"}`},
			"Note: ignored without effect: output_mode\n" + `{"ignore_case":true,"include":"*.go","limit":5,"pattern":"x"}`, false,
		},
		{"Grep by type", Call{Name: "Grep", Input: `{"pattern":"x","type":"ts"}`}, `{"include":"*.{ts,tsx,mts,cts}","pattern":"x"}`, false},
		{"Grep by a type that is its ending", Call{Name: "Grep", Input: `{"pattern":"x","type":"go"}`}, `{"include":"*.go","pattern":"x"}`, false},
		{"search", Call{Name: "search_file_content", Input: `{"query":"x","directory":"a"}`}, `{"path":"a","pattern":"x"}`, false},
		{"Glob", Call{Name: "Glob", Input: `{"pattern":"**/*.go","path":"a"}`}, `{"include":"**/*.go","path":"a","pattern":""}`, false},
		{"an image", Call{Name: "read_image", Input: `{"file_path":"a.png"}`}, `{"path":"a.png"}`, false},
		{"freeform", Call{Name: "apply_patch", Input: "*** x\n", Form: Freeform}, "*** x\n", true},
		{"freeform tool called as a function", Call{Name: "apply_patch", Input: `{"input":"*** x\n"}`}, "*** x\n", true},
		{"freeform tool with another's argument", Call{Name: "patch", Input: `{"patch":"*** x"}`}, "*** x", true},
		{"freeform tool called as a function with bare text", Call{Name: "apply_patch", Input: "*** x"}, "*** x", true},
		{"function called with bare text", Call{Name: "exec_command", Input: "ls", Form: Freeform}, `{"cmd":"ls"}`, false},
		{"an object in a text", Call{Name: "exec_command", Input: `"{\"cmd\":\"ls\"}"`}, `{"cmd":"ls"}`, false},
		{"an object in a text, with blanks", Call{Name: "read", Input: ` "\n {\"path\":\"a\"}\n" `}, `{"file_path":"a"}`, false},
		{"a freeform tool's object in a text", Call{Name: "apply_patch", Input: `"{\"input\":\"*** x\"}"`}, "*** x", true},
		{"a freeform tool's text in JSON", Call{Name: "apply_patch", Input: `"*** x\n"`}, "*** x\n", true},
		{"words of shell in a text", Call{Name: "shell", Input: `{"command":"[\"bash\",\"-lc\",\"echo arr\"]"}`}, `{"command":["bash","-lc","echo arr"]}`, false},
		{"words of a command in a text", Call{Name: "exec_command", Input: `{"cmd":"[\"echo\", \"a b\"]"}`}, `{"cmd":"echo 'a b'"}`, false},
		{"a script in such words", Call{Name: "Bash", Input: `{"command":"[\"bash\",\"-lc\",\"ls | wc\"]"}`}, `{"cmd":"ls | wc"}`, false},
		{"a command in brackets", Call{Name: "shell", Input: `{"command":"[ -f a ] && ls"}`}, `{"command":["sh","-c","[ -f a ] && ls"]}`, false},
		{"a list that is no words", Call{Name: "exec_command", Input: `{"cmd":"[1, 2]"}`}, `{"cmd":"[1, 2]"}`, false},
		{"steps in a text", Call{Name: "TodoWrite", Input: `{"todos":"[{\"content\":\"a\",\"status\":\"pending\"}]"}`}, `{"plan":[{"status":"pending","step":"a"}]}`, false},
		{"operation", Call{Name: "apply_patch", Input: `{"type":"delete_file","path":"a"}`, Form: Operation}, `{"type":"delete_file","path":"a"}`, false},
		{"operation of a tool that is built in", Call{Name: "native", Input: `{"type":"x"}`, Form: Operation}, `{"type":"x"}`, false},
		{"text for a tool that is built in", Call{Name: "native", Input: "x", Form: Freeform}, "x", true},
		{"built-in tool called as a function", Call{Name: "native", Input: `{"input":"x"}`}, "x", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := dispatcher(execFake, shellFake, planFake, patchFake, readFake, listFake, grepFake, imageFake, fake{name: "native", builtin: true})
			d.Offered = []string{"exec_command"}
			got := d.Dispatch(t.Context(), []Call{test.call})[0]
			must.Same(t, Result{Output: test.want}, got)
		})
	}
}

func TestExplainsBadArguments(t *testing.T) {
	for _, test := range []struct{ name, tool, input, want string }{
		{"not JSON", "exec_command", `{"cmd": "ls",}`, `not valid JSON at byte 14 (line 1, column 14), after "{\"cmd\": \"ls\",}"`},
		{"a list", "exec_command", `["ls"]`, `expected a JSON object, got array`},
		{"a text in a text", "exec_command", `"\"{}\""`, `expected a JSON object, got string`},
		{"a list in a text", "exec_command", `"[1]"`, `expected a JSON object, got string`},
		{"null", "exec_command", `null`, `expected a JSON object, got null`},
		{"empty", "exec_command", ``, `the arguments: expected "cmd", got nothing by that name`},
		{"wrong type", "exec_command", `{"cmd":7}`, `cmd: expected string, got integer 7`},
		{"wrong type deeper", "update_plan", `{"plan":[{"step":1,"status":"pending"}]}`, `plan[].step: expected string, got integer 1`},
		{"unknown status", "update_plan", `{"plan":[{"step":"a","status":"done"}]}`, `plan[].status: expected one of "pending", "in_progress", "completed", got "done"`},
		{"what the tool does not take", "read_file", `{"file_path":"a","colour":"red"}`, `which this tool does not take`},
		{"all arguments are listed", "read_file", `{}`, `The arguments are: file_path (string, required), limit (number).`},
		{"escalation", "exec_command", `{"cmd":"ls","sandbox_permissions":"require_escalated"}`, approvalNever},
		{"escalation of old", "shell", `{"command":["ls"],"with_escalated_permissions":true}`, approvalNever},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := dispatcher(execFake, shellFake, planFake, patchFake, readFake)
			got := d.Dispatch(t.Context(), []Call{{Name: test.tool, Input: test.input}})[0]
			if !got.Failed || !strings.Contains(got.Output, test.want) {
				t.Errorf("got %+v, want a failure with\n%s", got, test.want)
			}
		})
	}
}

func TestRestrict(t *testing.T) {
	for _, test := range []struct {
		name        string
		allow, deny []string
		want        []string
		err         string
	}{
		{"nothing", nil, nil, []string{"exec_command", "update_plan", "read_file"}, ""},
		{"deny by alias", nil, []string{"bash"}, []string{"update_plan", "read_file"}, ""},
		{"allow", []string{"read_file"}, nil, []string{"read_file"}, ""},
		{"deny wins", []string{"read_file", "update_plan"}, []string{"read_file"}, []string{"update_plan"}, ""},
		{"unknown", nil, []string{"fly"}, nil, `tools.deny: there is no tool "fly"; the tools are exec_command, update_plan, read_file`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := registry(execFake, planFake, readFake)
			err := r.Restrict(test.allow, test.deny)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("got error %v, want %s", err, test.err)
				}
				return
			}
			must.Do(t, err)
			must.Same(t, test.want, r.Names(), "names")
			var specs []string
			for _, spec := range r.Specs([]string{"read_file", "update_plan", "exec_command", "fly"}) {
				specs = append(specs, spec.Name)
			}
			must.Same(t, test.want, specs, "specs")
		})
	}
}

func TestDuplicateToolNamePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	registry(readFake, readFake)
}
