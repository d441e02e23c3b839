package command

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

const patchBody = "*** Begin Patch\n*** Add File: a\n+$HOME `x` $(( \\\n*** End Patch\n"

func TestPatchIn(t *testing.T) {
	dirless, here := patchCommand{text: patchBody}, func(dir string) patchCommand { return patchCommand{dir, patchBody} }
	for _, test := range []struct {
		name, script string
		want         patchCommand // the zero value: none is taken out
	}{
		{"quoted delimiter", "apply_patch <<'EOF'\n" + patchBody + "EOF\n", dirless},
		{"no newline at the end", "apply_patch <<'EOF'\n" + patchBody + "EOF", dirless},
		{"delimiter in double quotes", "apply_patch << \"PATCH\"\n" + patchBody + "PATCH", dirless},
		{"bare delimiter", "apply_patch <<EOF\n" + patchBody + "EOF\n", dirless},
		{"other name", "applypatch <<'EOF'\n" + patchBody + "EOF\n", dirless},
		{"blank lines around", "\n  apply_patch <<'EOF'\n" + patchBody + "EOF\n\n \n", dirless},
		{"comment before", "# mend it\napply_patch <<'EOF'\n" + patchBody + "EOF\n", dirless},
		{"directory", "cd sub/dir && apply_patch <<'EOF'\n" + patchBody + "EOF\n", here("sub/dir")},
		{"directory on a line of its own", "cd sub &&\napply_patch <<'EOF'\n" + patchBody + "EOF\n", here("sub")},
		{"directory in quotes", `cd "a b" && apply_patch <<'EOF'` + "\n" + patchBody + "EOF\n", here("a b")},
		{"directory in raw quotes", `cd 'a $b' && apply_patch <<'EOF'` + "\n" + patchBody + "EOF\n", here("a $b")},
		{"here-document signs in the directory", "cd 'a<<b' && apply_patch <<'EOF'\n" + patchBody + "EOF\n", here("a<<b")},

		{"another command before", "set -e\napply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"another command after", "apply_patch <<'EOF'\n" + patchBody + "EOF\nmake\n", patchCommand{}},
		{"another here-document after", "apply_patch <<'EOF'\n" + patchBody + "EOF\ncat <<'EOF'\nx\nEOF\n", patchCommand{}},
		{"and", "apply_patch <<'EOF' && make\n" + patchBody + "EOF\n", patchCommand{}},
		{"or", "cd sub || apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"pipe", "apply_patch <<'EOF' | tee log\n" + patchBody + "EOF\n", patchCommand{}},
		{"piped in", "cat <<'EOF' | apply_patch\n" + patchBody + "EOF\n", patchCommand{}},
		{"semicolon", "cd sub; apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"semicolon after", "apply_patch <<'EOF';\n" + patchBody + "EOF\n", patchCommand{}},
		{"two directories", "cd a && cd b && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"directory from a variable", "cd $HOME && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"directory from a variable in quotes", `cd "$HOME" && apply_patch <<'EOF'` + "\n" + patchBody + "EOF\n", patchCommand{}},
		{"directory from a command", "cd `make` && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"home", "cd ~ && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"pattern", "cd su* && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"escape", "cd a\\ b && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"option of cd", "cd -P sub && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"the directory before", "cd - && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"no directory", "cd && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"not a change of directory", "ls sub && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"directory with output elsewhere", "cd sub >log && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"argument", "apply_patch -v <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"patch as an argument", "apply_patch '" + patchBody + "'", patchCommand{}},
		{"output elsewhere", "apply_patch <<'EOF' >log\n" + patchBody + "EOF\n", patchCommand{}},
		{"other descriptor", "apply_patch 3<<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"tabs are taken off", "apply_patch <<-'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"here-string", "apply_patch <<<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"variable", "A=1 apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"negated", "! apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"background", "apply_patch <<'EOF' &\n" + patchBody + "EOF\n", patchCommand{}},
		{"subshell", "(apply_patch <<'EOF'\n" + patchBody + "EOF\n)", patchCommand{}},
		{"other program", "my_apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"program by its path", "./apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
		{"no end", "apply_patch <<'EOF'\n" + patchBody, patchCommand{}},
		{"nothing in it", "apply_patch <<'EOF'\nEOF\n", patchCommand{}},
		{"carriage returns", "apply_patch <<'EOF'\r\n*** Begin Patch\r\nEOF\r\n", patchCommand{}},
		{"from a file", "apply_patch <patch", patchCommand{}},
		{"deep", "cd " + strings.Repeat("$(", 1<<20) + " && apply_patch <<'EOF'\n" + patchBody + "EOF\n", patchCommand{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool := &Tools{options: Options{Patch: noPatch}}
			for _, argv := range [][]string{{"bash", "-lc", test.script}, {"/bin/sh", "-c", test.script}, {"zsh", "-l", "-c", test.script}} {
				got, ok := tool.patchIn(argv)
				if want := test.want; !ok && want != (patchCommand{}) || ok && got != want {
					t.Errorf("%s: got %+v, %t; want %+v", argv[:len(argv)-1], got, ok, want)
				}
			}
		})
	}
}

func noPatch(context.Context, string, string) (tools.Result, error) {
	return tools.Result{}, errors.New("not to be called")
}

func TestPatchInArgv(t *testing.T) {
	tool := &Tools{options: Options{Patch: noPatch}}
	script := "apply_patch <<'EOF'\n" + patchBody + "EOF\n"
	for _, test := range []struct {
		name string
		argv []string
		want bool
	}{
		{"argument", []string{"apply_patch", patchBody}, true},
		{"argument, other name", []string{"applypatch", patchBody}, true},
		{"two arguments", []string{"apply_patch", "-v", patchBody}, false},
		{"no argument", []string{"apply_patch"}, false},
		{"other program", []string{"patch", patchBody}, false},
		{"no shell", []string{"python3", "-c", script}, false},
		{"shell with other flags", []string{"bash", "-x", "-c", script}, false},
		{"shell with an argument", []string{"bash", "-c", script, "x"}, false},
		{"shell without -c", []string{"bash", script}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := tool.patchIn(test.argv)
			if ok != test.want || ok && got.text != patchBody {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
	if _, ok := new(Tools).patchIn([]string{"apply_patch", patchBody}); ok {
		t.Error("a patch is taken out although nobody applies it")
	}
}

// patched is what Options.Patch was called with.
type patched struct{ Dir, Text string }

func TestAppliesPatchCallsWithoutRunning(t *testing.T) {
	script := func(before string) string { return before + "apply_patch <<'EOF'\n" + patchBody + "EOF\n" }
	for _, test := range []struct {
		name, tool string
		arguments  map[string]any
		dir        string
		layout     string
	}{
		{"exec_command", "exec_command", map[string]any{"cmd": script("")}, ".", `^Wall time: \d+\.\d{4} seconds\nOutput:\ndone\n$`},
		{"exec_command in a directory", "exec_command", map[string]any{"cmd": script("cd b && "), "workdir": "sub"}, "sub/b", `\nOutput:\ndone\n$`},
		{"exec_command in a directory of its own", "exec_command", map[string]any{"cmd": script("cd /x && "), "workdir": "sub"}, "/x", `\nOutput:\ndone\n$`},
		{"exec_command with a login shell", "exec_command", map[string]any{"cmd": script(""), "login": true, "shell": "/bin/bash"}, ".", `\nOutput:\ndone\n$`},
		{"shell_command", "shell_command", map[string]any{"command": script("")}, ".", `^Exit code: 0\nWall time: \d+\.\d seconds\nOutput:\ndone\n$`},
		{"shell", "shell", map[string]any{"command": []string{"apply_patch", patchBody}, "workdir": "sub"}, "sub", `^Exit code: 0\n.*\nOutput:\ndone\n$`},
		{"shell with a script", "shell", map[string]any{"command": []string{"bash", "-lc", script("cd sub && ")}}, "sub", `^Exit code: 0\n.*\nOutput:\ndone\n$`},
		{"another agent's shell", "Bash", map[string]any{"command": []string{"bash", "-lc", script("")}}, ".", `^Wall time: .*\nOutput:\ndone\n$`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []patched
			b := newBench(t, func(o *Options) {
				o.Env = []string{"PATH=/nowhere"} // nothing can be run
				o.Patch = func(_ context.Context, dir, text string) (tools.Result, error) {
					got = append(got, patched{dir, text})
					return tools.Result{Output: "done", Detail: map[string]any{"files": 1}}, nil
				}
			})
			result := b.call(t.Context(), test.tool, test.arguments)
			if result.Failed || !regexp.MustCompile(test.layout).MatchString(result.Output) || result.Detail["files"] != 1 {
				t.Errorf("got %+v", result)
			}
			dir := test.dir
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(b.dir, dir)
			}
			must.Same(t, []patched{{dir, patchBody}}, got, "patched")
			must.Same(t, true, b.seen.mutated, "the call does not mutate")
		})
	}
}

func TestRefusedPatchFailsCall(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Patch = func(context.Context, string, string) (tools.Result, error) { return tools.Refuse("no"), nil }
	})
	for tool, test := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"exec_command": {map[string]any{"cmd": "apply_patch <<'EOF'\n" + patchBody + "EOF"}, "\nOutput:\nno\n"},
		"shell":        {map[string]any{"command": []string{"apply_patch", patchBody}}, "Exit code: 1\n"},
	} {
		must.Contain(t, toolstest.Failure(t, b.call(t.Context(), tool, test.arguments)), test.want)
		test.arguments["workdir"] = "gone"
		must.Contain(t, toolstest.Failure(t, b.call(t.Context(), tool, test.arguments)), "there is no such directory")
	}
}

func TestRefusesBarePatchAsCommand(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Patch = noPatch })
	for _, test := range []struct {
		name, tool string
		arguments  map[string]any
	}{
		{"script", "exec_command", map[string]any{"cmd": patchBody}},
		{"here-document that nothing reads", "exec_command", map[string]any{"cmd": "<<'EOF'\n" + patchBody + "EOF\n"}},
		{"script of shell_command", "shell_command", map[string]any{"command": "\n " + patchBody}},
		{"argv", "shell", map[string]any{"command": []string{patchBody}}},
		{"script in an argv", "shell", map[string]any{"command": []string{"bash", "-c", patchBody}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := b.call(t.Context(), test.tool, test.arguments)
			if !got.Failed || !strings.HasPrefix(got.Output, `patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]`) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestOtherCommandsDoNotMutate(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Patch = noPatch })
	for tool, arguments := range map[string]map[string]any{
		"exec_command":  {"cmd": "echo apply_patch <<EOF\nx\nEOF"},
		"shell_command": {"command": "echo apply_patch"},
		"shell":         {"command": []string{"echo", "apply_patch"}},
	} {
		got := b.call(t.Context(), tool, arguments)
		if got.Failed || !strings.HasSuffix(got.Output, "apply_patch\n") || b.seen.mutated {
			t.Errorf("%s: got %+v, mutates: %t", tool, got, b.seen.mutated)
		}
	}
}

// FuzzPatchIn looks for scripts at which the search for a patch breaks down, or
// of which it takes what is not in them.
func FuzzPatchIn(f *testing.F) {
	for _, script := range []string{
		"apply_patch <<'EOF'\n" + patchBody + "EOF\n", "cd a && applypatch <<A\nb\nA", "apply_patch <<''\nx\n\n", "apply_patch <<E'O'F\nx\nEOF", "<<", "apply_patch<<\"\"",
	} {
		f.Add(script)
	}
	tool := &Tools{options: Options{Patch: noPatch}}
	f.Fuzz(func(t *testing.T, script string) {
		got, ok := tool.patchIn([]string{"sh", "-c", script})
		if ok && (got.text == "" || !strings.Contains(script, got.text) || !strings.Contains(script, got.dir)) {
			encoded, _ := json.Marshal(script)
			t.Errorf("%s gives %+v", encoded, got)
		}
	})
}
