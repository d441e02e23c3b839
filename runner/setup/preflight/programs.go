package preflight

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// program is a program of a job's hook, server or tool.
type program struct {
	usedBy     string // "hook lint"
	key        string // where the job names it
	name       string
	script     string // that an interpreter reads, of the base commit; empty for none
	searchPath string // where a bare name is looked for
	home       string // the folder that ~/ names
	hint       string // for one that is missing; may be empty
	// needed ends a run without the program. installable means that setup commands may install it.
	needed, installable bool
}

// checkPrograms returns a finding for each missing program of a hook, MCP server or dynamic tool.
func (o Options) checkPrograms() (found Findings, err error) {
	for _, p := range slices.Concat(o.hookPrograms(), o.serverPrograms(), o.toolPrograms()) {
		f, err := o.checkProgram(p)
		if err != nil {
			return found, err
		}
		if f != nil {
			found = append(found, *f)
		}
	}
	return found, nil
}

// hookPrograms returns the programs of the job's hooks, by name.
func (o Options) hookPrograms() (all []program) {
	home := o.Environ.Home()
	for _, name := range slices.Sorted(maps.Keys(o.Job.Hooks)) {
		hook := o.Job.Hooks[name]
		words := slices.Clone(hook.Run)
		for i := range words {
			words[i] = job.ExpandHome(words[i], home)
		}
		all = append(all, program{
			usedBy: "hook " + name, key: "hooks." + name + ".run", name: hook.Run[0], script: job.ScriptOf(words), searchPath: o.Path, home: home, needed: hook.OnError != job.OnErrorContinue,
		})
	}
	return all
}

// serverPrograms returns the programs of the MCP servers that the job starts. A server's env.set may
// replace PATH and HOME.
func (o Options) serverPrograms() (all []program) {
	for _, name := range slices.Sorted(maps.Keys(o.Job.MCPServers)) {
		server := o.Job.MCPServers[name]
		if server.Command == "" {
			continue
		}
		path, home := o.Path, o.Environ.Home()
		if own, set := server.Env.Set["PATH"]; set {
			path = own
		}
		if own, set := server.Env.Set["HOME"]; set {
			home = own
		}
		all = append(all, program{
			usedBy: "server " + name, key: "mcp_servers." + name + ".command", name: server.Command, searchPath: path, home: home, hint: server.SplitHint(), needed: server.Required, installable: len(o.Job.Setup) > 0,
		})
	}
	return all
}

// toolPrograms returns the programs of dynamic tools. Tools that are shell scripts have none.
func (o Options) toolPrograms() (all []program) {
	path := stage.Variable(policy.Environment(o.Environ, o.Job.Policy.Env.Pass, o.Job.Policy.Env.Set), "PATH")
	for i, tool := range o.Job.Tools.Dynamic {
		if len(tool.Run.Argv) == 0 { // a script for the shell
			continue
		}
		all = append(all, program{
			usedBy: "tool " + tool.Name, key: fmt.Sprintf("tools.dynamic[%d].run", i), name: tool.Run.Argv[0], searchPath: path, home: o.Environ.Home(), needed: true, installable: len(o.Job.Setup) > 0,
		})
	}
	return all
}

// checkProgram returns a finding for a missing program, or nil if the program exists or only the run can
// tell.
func (o Options) checkProgram(p program) (*Finding, error) {
	switch name := filepath.FromSlash(job.ExpandHome(p.name, p.home)); {
	case strings.HasPrefix(name, "~") || strings.Contains(name, "$"):
		return nil, nil // some folder of the run
	case filepath.IsAbs(name):
		mayChange := o.Changeable != nil && o.Changeable(name)
		if mayChange || isExecutable(name) {
			return nil, nil
		}
		return p.notFound("is not on this machine, or is no program"), nil
	case strings.Contains(p.name, "/"):
		return o.checkFileInBase(p, p.name)
	case isInPath(name, p.searchPath):
		return o.checkFileInBase(p, p.script)
	}
	return p.notFound("is not in PATH"), nil
}

func isInPath(name, path string) bool {
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool { return filepath.IsAbs(dir) && isExecutable(filepath.Join(dir, name)) })
}

// checkFileInBase returns a finding if the base commit lacks the file name. Setup commands cannot install
// it: agent-ci reads it from the commit.
func (o Options) checkFileInBase(p program, name string) (*Finding, error) {
	switch {
	case name == "":
		return nil, nil
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return p.finding(Mistake, outcome.Stopf(outcome.InvalidInput, "program", "The %s names %s, which is outside of the repository; give an absolute path (%s).", p.usedBy, name, p.key)), nil
	case o.InBase == nil:
		return p.finding(Note, outcome.Stopf(outcome.InvalidInput, "program", "The %s names %s; without a checkout agent-ci cannot tell whether the base commit has it.", p.usedBy, name)), nil
	}
	exists, err := o.InBase(filepath.ToSlash(filepath.Clean(name)))
	if err != nil || exists {
		return nil, err
	}
	return p.finding(Mistake, outcome.Stopf(outcome.InvalidInput, "program", "The %s names %s, which is not in the base commit; commit it, or correct %s.", p.usedBy, name, p.key)), nil
}

// notFound returns the finding for a program that is missing in a place, such as "is not in PATH".
func (p program) notFound(where string) *Finding {
	if p.installable {
		return p.finding(Note, outcome.Stopf(outcome.InvalidInput, "program", "The program of the %s, %s, %s; agent-ci assumes that setup commands install it%s.", p.usedBy, p.name, where, p.hint))
	}
	return p.finding(Missing, outcome.Stopf(outcome.InvalidInput, "program", "The program of the %s, %s, %s; install it, or correct %s%s.", p.usedBy, p.name, where, p.key, p.hint))
}

// finding returns stop as a finding of a kind. It is only a note if the run does not need the program.
func (p program) finding(kind Kind, stop *outcome.Stop) *Finding {
	if !p.needed {
		kind = Note
	}
	return &Finding{kind, stop.Reason, p.key, stop.Message}
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
