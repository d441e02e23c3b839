package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestReportsMissingPrograms(t *testing.T) {
	bin, lib := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{filepath.Join(bin, "here"): 0o700, filepath.Join(bin, "python3"): 0o700, filepath.Join(bin, "text"): 0o600, filepath.Join(lib, "there"): 0o700} {
		must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"), mode))
	}
	const none = Kind("")
	for _, test := range []struct {
		name string
		job  string // below version: 1
		want Kind
		says string
	}{
		{"a hook in PATH", "hooks: {h: {on: Stop, run: [here]}}", none, ""},
		{"a hook that is no program", "hooks: {h: {on: Stop, run: [text]}}", Missing, "The program of the hook h, text, is not in PATH; install it, or correct hooks.h.run."},
		{"a hook in another folder", "hooks: {h: {on: Stop, run: [there]}}", Missing, "not in PATH"},
		{"a hook that setup cannot bring", "hooks: {h: {on: Stop, run: [none]}}\nsetup: [{run: x}]", Missing, "not in PATH"},
		{"a hook that may fail", "hooks: {h: {on: Stop, run: [none], on_error: continue}}", Note, "not in PATH"},
		{"a hook of the base", "hooks: {h: {on: Stop, run: [tools/base]}}", none, ""},
		{"a hook that the base lacks", "hooks: {h: {on: Stop, run: [tools/none]}}", Mistake, "The hook h names tools/none, which is not in the base commit; commit it, or correct hooks.h.run."},
		{"a script of the base", "hooks: {h: {on: Stop, run: [here, ./x]}}", none, ""},
		{"a hook outside", "hooks: {h: {on: Stop, run: [../x]}}", Mistake, "outside of the repository"},
		{"a hook by its path", "hooks: {h: {on: Stop, run: [" + filepath.Join(bin, "here") + "]}}", none, ""},
		{"a hook by a path that is none", "hooks: {h: {on: Stop, run: [" + filepath.Join(bin, "none") + "]}}", Missing, "is not on this machine, or is no program"},
		{"a hook below home", "hooks: {h: {on: Stop, run: [~/here]}}", none, ""},
		{"a hook that home lacks", "hooks: {h: {on: Stop, run: ['${HOME}/none']}}", Missing, "The program of the hook h, ${HOME}/none, is not on this machine, or is no program"},
		{"a script below home", "hooks: {h: {on: Stop, run: [python3, ~/here]}}", none, ""},
		{"a script that the base lacks", "hooks: {h: {on: Stop, run: [python3, none]}}", Mistake, "The hook h names none, which is not in the base commit"},
		{"a script outside", "hooks: {h: {on: Stop, run: [python3, ../x]}}", Mistake, "outside of the repository"},
		{"a hook that the agent could change", "hooks: {h: {on: Stop, run: [/checkout/x]}}", none, ""}, // which the run refuses
		{"a server in PATH", "mcp_servers: {s: {command: here, tools: [a]}}", none, ""},
		{"a server in its own PATH", "mcp_servers: {s: {command: there, tools: [a], env: {set: {PATH: " + lib + "}}}}", none, ""},
		{"a server that is missing", "mcp_servers: {s: {command: none, tools: [a]}}", Missing, "The program of the server s, none, is not in PATH; install it, or correct mcp_servers.s.command."},
		{"a server that setup may bring", "mcp_servers: {s: {command: none, tools: [a]}}\nsetup: [{run: x}]", Note, "agent-ci assumes that setup commands install it."},
		{"a server below home", "mcp_servers: {s: {command: ~/here, tools: [a]}}", none, ""},
		{"a server below its own home", "mcp_servers: {s: {command: ~/there, tools: [a], env: {set: {HOME: " + lib + "}}}}", none, ""},
		{"a server that home lacks", "mcp_servers: {s: {command: ~/none, tools: [a]}}", Missing, "The program of the server s, ~/none, is not on this machine, or is no program; install it"},
		{"a server that setup may bring home", "mcp_servers: {s: {command: ~/none, tools: [a]}}\nsetup: [{run: x}]", Note, "agent-ci assumes that setup commands install it."},
		{"a server with its arguments in one word", "mcp_servers: {s: {command: ~/here -x, tools: [a]}}", Missing, "correct mcp_servers.s.command; if that is a program with its arguments, write command: ~/here, args: [-x]."},
		{"a tool that home lacks", "tools: {dynamic: [{name: t, description: d, input_schema: {type: object}, run: [~/none]}]}", Missing, "The program of the tool t, ~/none, is not on this machine"},
		{"a server that is not needed", "mcp_servers: {s: {command: none, tools: [a], required: false}}", Note, "not in PATH"},
		{"a server that the base lacks", "mcp_servers: {s: {command: ./none, tools: [a]}}\nsetup: [{run: x}]", Mistake, "not in the base commit"},
		{"a server at an address", "mcp_servers: {s: {url: 'https://mcp.example.com/mcp', tools: [a]}}", none, ""},
		{"a tool with a script", "tools: {dynamic: [{name: t, description: d, input_schema: {type: object}, run: none --x}]}", none, ""},
		{"a tool that is missing", "tools: {dynamic: [{name: t, description: d, input_schema: {type: object}, run: [none]}]}", Missing, "correct tools.dynamic[0].run."},
		{"a tool in a folder of the run", "tools: {dynamic: [{name: t, description: d, input_schema: {type: object}, run: ['${AGENT_CI_BASE_TREE}/x']}]}", none, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := must.Get(job.LoadTemplate(config.Layer{Name: "job.yml", Kind: config.FileLayer, Data: []byte("version: 1\n" + test.job + "\n")}))(t)
			o := Options{
				Job: j, Environ: settings.Environment{"PATH=" + bin, "HOME=" + bin}, Scripted: true, Path: bin,
				Changeable: func(path string) bool { return strings.HasPrefix(path, "/checkout/") },
				InBase:     func(path string) (bool, error) { return path == "tools/base" || path == "x", nil },
			}
			found := must.Get(Check(t.Context(), o))(t)
			switch {
			case test.want == none && len(found) > 0:
				t.Errorf("it finds %+v", found)
			case test.want != none && (len(found) != 1 || found[0].Kind != test.want || !strings.Contains(found[0].Message, test.says)):
				t.Errorf("it finds %+v, want %s: %s", found, test.want, test.says)
			}
			must.Same(t, test.want == Mistake || test.want == Missing, found.Stop() != nil, "a run is refused", found.Stop())
		})
	}
}
