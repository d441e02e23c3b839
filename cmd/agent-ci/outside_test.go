package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// startsVariable has the file in which the program that tests build notes what it starts outside of
// a sandbox.
const startsVariable = "STARTS_OUTSIDE_OF_A_SANDBOX"

// starters lists the functions and types that start programs, by import path. An asterisk stands
// for the whole import.
var starters = map[string][]string{
	"os/exec":                  {"Command", "CommandContext", "Cmd", "LookPath"},
	"os":                       {"StartProcess"},
	"syscall":                  {"ForkExec", "StartProcess", "Exec", "SYS_EXECVE", "SYS_EXECVEAT", "CreateProcess"},
	"golang.org/x/sys/unix":    {"Exec", "SYS_EXECVE", "SYS_EXECVEAT"},
	"golang.org/x/sys/execabs": {"*"}, "plugin": {"*"}, "C": {"*"},
	"github.com/creack/pty":                                 {"Start", "StartWithSize", "StartWithAttrs"},
	"github.com/modelcontextprotocol/go-sdk/mcp":            {"CommandTransport"},
	"github.com/go-git/go-git/v5":                           {"PlainClone", "PlainCloneContext", "Clone", "CloneContext", "NewRemote"},
	"github.com/go-git/go-git/v5/plumbing/transport/file":   {"*"},
	"github.com/go-git/go-git/v5/plumbing/transport/client": {"*"},
	"github.com/mattn/go-shellwords":                        {"*"},
	"github.com/rhysd/actionlint":                           {"NewLinter", "Linter", "Command", "NewRuleShellcheck", "NewRulePyflakes"},
	"modernc.org/libc":                                      {"*"},
}

// mayStart are the places that start programs by themselves: the one for programs outside of a
// sandbox, the process inside one, and what that one starts there.
var mayStart = []string{"policy/outside/outside.go", "policy/sandbox/supervisor_linux.go: syscall.ForkExec", "policy/sandbox/stage/serve_linux.go: syscall.ForkExec"}

// mayHoldCommands are dependencies that can start programs, and that are part of agent-ci for something else.
var mayHoldCommands = []string{"github.com/creack/pty", "github.com/mattn/go-shellwords", "github.com/modelcontextprotocol/go-sdk/mcp", "github.com/rhysd/actionlint", "golang.org/x/sys/execabs", "modernc.org/libc"}

func TestOnlyOutsideStartsPrograms(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Imports,Standard", ".")
	out, err := cmd.Output()
	must.Do(t, err, "go list")
	var found, holding []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir string
			Imports         []string
			Standard        bool
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if folder, ours := strings.CutPrefix(p.ImportPath+"/", module); ours {
			found = append(found, startsOf(t, p.Dir, folder)...)
		} else if !p.Standard && slices.Contains(p.Imports, "os/exec") {
			holding = append(holding, p.ImportPath)
		}
	}
	for _, start := range found {
		place, _, _ := strings.Cut(start, ": ")
		if !slices.Contains(mayStart, start) && !slices.Contains(mayStart, place) {
			t.Errorf("%s: programs are started by package outside alone", start)
		}
	}
	for _, may := range mayStart {
		must.Same(t, true, slices.ContainsFunc(found, func(start string) bool { return strings.HasPrefix(start+": ", may+": ") }), may, "starts nothing")
	}
	if slices.Sort(holding); !slices.Equal(holding, mayHoldCommands) {
		t.Errorf("the dependencies %q can start programs; those of %q are known", holding, mayHoldCommands)
	}
}

// startsOf lists the names of starters that the files of a package use, for any system.
func startsOf(t *testing.T, dir, folder string) (all []string) {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		place := folder + filepath.Base(name)
		imported := map[string]string{}
		for _, spec := range file.Imports {
			path := must.Get(strconv.Unquote(spec.Path.Value))(t)
			as := regexp.MustCompile(`(/v[0-9]+)?$`).ReplaceAllString(path, "")
			as = strings.TrimPrefix(as[strings.LastIndexByte(as, '/')+1:], "go-")
			if spec.Name != nil {
				as = spec.Name.Name
			}
			if of := starters[path]; slices.Contains(of, "*") || of != nil && as == "." {
				all = append(all, place+": "+path)
			}
			imported[as] = path
		}
		types := map[ast.Node]bool{} // where a command is the type of a value alone
		ast.Inspect(file, func(node ast.Node) bool {
			if pointer, is := node.(*ast.StarExpr); is {
				types[pointer.X] = true
			}
			of, is := node.(*ast.SelectorExpr)
			if !is || types[node] {
				return true
			}
			if as, is := of.X.(*ast.Ident); is && slices.Contains(starters[imported[as.Name]], of.Sel.Name) {
				all = append(all, place+": "+as.Name+"."+of.Sel.Name)
			}
			return true
		})
	}
	return all
}

// TestListCoversStartedPrograms has each use of the list in whole runs, and looks at each start: as the
// program notes it, and, where the machine has strace, as the kernel is asked for it.
func TestListCoversStartedPrograms(t *testing.T) {
	t.Parallel()
	if confines() == sandbox.LevelNone {
		t.Skip("needs a sandbox")
	}
	w := newPublishing(t)
	w.repo.SetRole("helper[bot]", "write")
	starts := filepath.Join(w.dir, "starts")
	w.env = append(w.env, startsVariable+"="+starts, "GIT_CONFIG_GLOBAL="+filepath.Join(w.dir, "gitconfig"), "GITHUB_ACTIONS=false", "HOME="+filepath.Join(w.dir, "home"), "SECRET_TOKEN=hunter22hunter22")
	w.write("gitconfig", "[filter \"shout\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n")
	w.write("operator.yml", "version: 1\nhooks: {note: {on: SessionStart, run: [/bin/true], trusted: operator}}\n")
	w.write("bump.yml", "version: 1\nname: bump\ntargets: {list: [{repository: octo/widgets}]}\njob: {version: 1, task: {prompt: Bump.}, limits: {cost_usd: 0}}\n")
	w.write("seed/.gitattributes", "*.txt filter=shout\n")
	w.write("seed/a.txt", "a\n")
	w.pushSeed()
	w.session("louder", "echo more >>a.txt")
	clone := filepath.Join(w.dir, "clone")
	w.git(w.dir, "clone", "--quiet", w.repo.Dir, clone)
	plain := filepath.Join(w.dir, "plain") // has no filter, which danger-full-access refuses
	w.repository(plain)
	w.git(plain, "remote", "add", "origin", "git@alias:octo/widgets.git")
	w.write("home/.ssh/config", "Host alias\n\tHostname elsewhere.example\n")
	louder := []string{"--prompt", "x", "--quiet", "--replay", "louder.yml"}
	for _, args := range [][]string{
		append([]string{"run", "--repo", clone, "--out", "run", "--publish", "local", "--operator-file", filepath.Join(w.dir, "operator.yml")}, louder...),
		append([]string{"run", "--repo", plain, "--out", "open", "--publish", "none", "--set", "policy.sandbox=danger-full-access"}, louder...),
		{"doctor", "--repo", clone},
		{"campaign", "plan", "bump.yml", "--ledger", "ledger"},
		{"campaign", "run", "bump.yml", "--ledger", "ledger", "--publish", "local", "--replay", "louder.yml"},
	} {
		before := noted(t, starts)
		cmd, traced := tracedCommand(t, args)
		cmd.Env, cmd.Dir = w.env, w.dir
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] != "doctor" {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		if args[0] == "run" {
			w.git(clone, "checkout", "--quiet", "--force", "main")
		}
		var paths []string
		for _, s := range noted(t, starts)[len(before):] {
			paths = append(paths, s.Path)
		}
		if started := traced(); started != nil {
			if slices.Sort(paths); !slices.Equal(slices.Sorted(slices.Values(started)), paths) {
				t.Errorf("%q: the kernel was asked for %q, and noted is %q", args, started, paths)
			}
		}
	}
	all := noted(t, starts)
	_, noSSH := exec.LookPath("ssh")
	for _, use := range outside.Uses() {
		if use == outside.SSHConfig && noSSH != nil {
			continue
		}
		must.Same(t, true, slices.ContainsFunc(all, func(s outside.Start) bool { return s.Use == use.Name }), "nothing was started as", use.Name)
	}
	wantStarts(t, all)
}

// wantStarts looks at starts: nothing is withheld, and nothing but what a person wrote gets a token or is
// in a folder with files of the repository.
func wantStarts(t *testing.T, all []outside.Start) {
	t.Helper()
	for _, s := range all {
		i := slices.IndexFunc(outside.Uses(), func(u *outside.Use) bool { return u.Name == s.Use })
		if i < 0 {
			t.Errorf("%+v is of no use", s)
			continue
		}
		must.None(t, s.Withheld, s.Use, "gets", "in vain: add them to its row, or do not give them")
		secret := func(name string) bool { return strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY") }
		if outside.Uses()[i] != outside.Run && slices.ContainsFunc(s.Variables, secret) {
			t.Errorf("%s gets %q", s.Use, s.Variables)
		}
	}
}

// noted reads what was started.
func noted(t *testing.T, file string) (all []outside.Start) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var s outside.Start
		must.Do(t, json.Unmarshal([]byte(line), &s))
		all = append(all, s)
	}
	return all
}

// tracedCommand is agent-ci, traced where the machine has strace. The function gives the programs that
// agent-ci and the runs of its campaign have started; nil without strace.
func tracedCommand(t *testing.T, args []string) (*exec.Cmd, func() []string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		return exec.Command(binary, args...), func() []string { return nil }
	}
	trace := filepath.Join(t.TempDir(), "trace")
	// Not with --seccomp-bpf: with it, strace has missed starts.
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-e", "trace=execve,execveat,clone,clone3,fork,vfork", "-e", "signal=none", "-o", trace, binary}, args...)...)
	return cmd, func() []string { return startedIn(t, trace) }
}

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(.*)$`)
	traceClone  = regexp.MustCompile(`^(?:<\.\.\. )?(?:clone|clone3|fork|vfork)\b(.*)`)
	traceResult = regexp.MustCompile(`= (\d+)$`)
	traceExec   = regexp.MustCompile(`^execve(?:at)?\((?:AT_FDCWD, )?"([^"]*)", \["([^"]*)"`)
)

// startedIn reads a trace. ours are the threads of agent-ci, children what they started and what has not
// become another program yet.
func startedIn(t *testing.T, trace string) []string {
	t.Helper()
	raw := read(t, trace)
	ours, children, unfinished := map[string]bool{}, map[string]bool{}, map[string]string{}
	started := []string{}
	early := map[string][]string{} // of children whose parent's call returns later
	for line := range strings.Lines(raw) {
		of := traceLine.FindStringSubmatch(strings.TrimSpace(line))
		if of == nil {
			continue
		}
		pid, call := of[1], of[2]
		if len(ours) == 0 {
			ours[pid] = true
			continue // its own start
		}
		if ran := traceExec.FindStringSubmatch(call); ran != nil {
			switch {
			case strings.Contains(call, "= -1"):
			case children[pid]:
				delete(children, pid)
				started = append(started, ran[1])
				ours[pid] = ran[1] == binary
			case !ours[pid]:
				early[pid] = append(early[pid], ran[1])
			}
			continue
		}
		cloned := traceClone.FindStringSubmatch(call)
		if cloned == nil || !ours[pid] {
			continue
		}
		flags := unfinished[pid] + cloned[1]
		if strings.HasSuffix(call, "<unfinished ...>") {
			unfinished[pid] = flags
			continue
		}
		delete(unfinished, pid)
		child := traceResult.FindStringSubmatch(call)
		switch {
		case child == nil:
		case strings.Contains(flags, "CLONE_THREAD"):
			ours[child[1]] = true
		case len(early[child[1]]) > 0:
			started = append(started, early[child[1]][0])
			ours[child[1]] = early[child[1]][0] == binary
		default:
			children[child[1]] = true
		}
	}
	if len(started) == 0 && fmt.Sprint(ours) == "map[]" {
		t.Fatalf("the trace is empty:\n%s", raw)
	}
	return started
}
