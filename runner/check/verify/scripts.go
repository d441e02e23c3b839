package verify

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// changedScripts returns the files that a check or setup command seems to run and that the change
// altered or deleted. It returns nil unless the check was red on the base and is green now.
func (c Checks) changedScripts(i int, row transcript.VerifyRow, change *gitops.ChangeSet) (paths []string) {
	becameGreen := row.After == "green" && (row.Before == "red" || row.Before == "timeout")
	if !becameGreen {
		return nil
	}
	commands := []string{c.Job.Verify[i].Run}
	for _, step := range c.Job.Setup {
		commands = append(commands, step.Run)
	}
	named := filesNamedIn(commands)
	for _, f := range change.Files {
		if f.OldMode != "" && slices.ContainsFunc(named, func(name string) bool { return mayMeanFile(name, c.Job.Repository.Path, f.Path) }) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// defaultFiles lists, by program, the files that programs run by default.
var defaultFiles = map[string][]string{
	"make": {"Makefile", "makefile", "GNUmakefile"}, "just": {"justfile", "Justfile"}, "rake": {"Rakefile"}, "tox": {"tox.ini"},
	"npm": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json"},
}

// readOnlyPrograms lists programs that do not run the files in their arguments.
var readOnlyPrograms = map[string]bool{
	"test": true, "[": true, "[[": true, "grep": true, "egrep": true, "fgrep": true, "rg": true, "cat": true, "head": true, "tail": true, "wc": true, "ls": true, "diff": true,
	"cmp": true, "echo": true, "printf": true, "cp": true, "mv": true, "rm": true, "mkdir": true, "touch": true, "cd": true, "sed": true, "jq": true, "git": true,
}

// filesNamedIn returns words of scripts that may be names of files that a command runs.
func filesNamedIn(scripts []string) (all []string) {
	for _, script := range scripts {
		for _, command := range shell.DecidingCommands(script) {
			if readOnlyPrograms[path.Base(command[0])] {
				continue
			}
			for _, word := range command {
				_, value, isFlag := strings.Cut(word, "=") // such as --config=FILE
				if !isFlag {
					value = word
				}
				all = append(all, path.Clean(value))
				all = append(all, defaultFiles[word]...)
			}
		}
	}
	return all
}

// mayMeanFile reports whether a name in a command, which starts in dir, may mean file.
func mayMeanFile(name, dir, file string) bool {
	if path.Join(dir, name) == file || name == file {
		return true
	}
	return strings.ContainsAny(name, "./") && strings.HasSuffix(file, "/"+name)
}

// judgeScripts runs a check that became green once more, with the base's versions of its scripts.
// If that fails, it records the scripts: they alone may have made the check green.
func (p *proof) judgeScripts(ctx context.Context) error {
	if len(p.scripts) == 0 {
		return nil
	}
	seen, err := p.runOnTree(ctx, "scripts", p.change.Tree, p.change.Base.Tree, p.scripts)
	if err != nil {
		return err
	}
	switch seen.state {
	case "red", "timeout":
		for _, file := range p.scripts {
			p.addBaseTest(transcript.OldTest{File: file, Script: true, Fails: true, Shared: len(p.scripts) > 1})
		}
	case transcript.FlakyState:
		p.oldTestsUnknown = "with the files that it runs as they were the check is flaky"
	}
	return nil
}
