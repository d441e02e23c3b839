package confine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
)

func TestReplacesCheckoutPathsInEnvironment(t *testing.T) {
	for text, want := range map[string]string{
		"/work":                 "/tree",
		"/work/bin:/usr/bin":    "/tree/bin:/usr/bin",
		"-I/work -L/work/lib":   "-I/work -L/work/lib", // as in x/work
		"-I /work/lib":          "-I /tree/lib",
		"/a/work/work":          "/a/work/work",
		"=/work;(/work)":        "=/tree;(/tree)",
		"/workshop:/work-2":     "/workshop:/work-2",
		"/home/work:/work.old":  "/home/work:/work.old",
		"//work":                "//work",
		"/work/work":            "/tree/work",
		"/worké":                "/worké",
		"file:///work and more": "file:///work and more",
		"nothing":               "nothing",
	} {
		must.Same(t, want, replacePath(text, "/work", "/tree"), text)
	}
}

func TestEnvironmentNamesTree(t *testing.T) {
	s, tree, links := ready(t), t.TempDir(), t.TempDir()
	alias, detour := filepath.Join(links, "alias"), filepath.Join(links, "bin")
	must.Do(t, os.Mkdir(filepath.Join(s.Root, "bin"), 0o755))
	for link, target := range map[string]string{alias: s.Root, detour: filepath.Join(s.Root, "bin")} {
		must.Do(t, os.Symlink(target, link))
	}
	path := strings.Join([]string{filepath.Join(s.Root, "bin"), detour, "/usr/bin", "relative"}, ":")
	s.Environ = []string{"PATH=" + path, "PWD=" + alias, "GITHUB_WORKSPACE=" + links}
	s.Job.Policy.Env.Set = map[string]string{"LIB": alias + "/lib", "TOP": s.Root}
	must.Same(t, s.CommandEnv(), s.envForTree(s.Root), "in the checkout it is another")
	env := s.envForTree(tree)
	for _, want := range []string{"LIB=" + tree + "/lib", "TOP=" + tree, "PATH=" + filepath.Join(tree, "bin") + ":/usr/bin:relative"} {
		must.Same(t, true, slices.Contains(env, want), "no", want, "in", env)
	}
	s.Environ = []string{"PATH=" + path}
	if env := s.envForTree(tree); !slices.Contains(env, "LIB="+alias+"/lib") {
		t.Errorf("a name that agent-ci was not started by is taken for the checkout: %q", env)
	}
}

func TestLinksAgentPrograms(t *testing.T) {
	s := ready(t)
	for range 2 { // each attempt has new tools
		s.LinkProgram("some_tool")
	}
	target, err := os.Readlink(s.Record.Join(ProgramsFolder, "some_tool"))
	if program, _ := os.Executable(); target != program || len(s.Record.Warnings()) != 0 {
		t.Errorf("the link leads to %s (%v), warnings %v", target, err, s.Record.Warnings())
	}
	for given, want := range map[string]string{"PATH=/bin": "PATH=/bin:" + s.Record.Join(ProgramsFolder), "PATH=": "PATH="} {
		s.Environ = []string{given}
		if env := s.AgentEnv(AgentPlace()); !slices.Contains(env, want) {
			t.Errorf("%s became %q", given, env)
		}
	}
	s.Record.Remove(record.StateFolder)
	must.Do(t, os.WriteFile(s.Record.Join(record.StateFolder), nil, 0o600))
	s.LinkProgram("some_tool")
	if warned := s.Record.Warnings(); len(warned) != 1 || warned[0].Code != "no_some_tool" {
		t.Errorf("warnings %v", warned)
	}
}

// waiting starts a program that waits for its input to end.
func waiting(t *testing.T, env ...string) (*exec.Cmd, func() error) {
	t.Helper()
	cmd := exec.Command("/bin/cat")
	cmd.Env = env
	input := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	return cmd, input.Close
}

func TestKillsLeftoverProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	dir := must.Get(record.NewDirectory(filepath.Join(t.TempDir(), "run"), ""))(t)
	defer dir.Close()
	programs := dir.Join(ProgramsFolder)
	left, _ := waiting(t, "A=b", "PATH=/bin:"+programs)
	other, end := waiting(t, "PATH="+programs+"-other:/bin", "PROGRAMS="+programs)
	must.Do(t, KillLeftovers(t.Context(), dir))
	_ = left.Wait()
	if status, is := left.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
		t.Errorf("what was left ended as %v", left.ProcessState)
	}
	must.Do(t, end())
	stat := must.Get(os.ReadFile("/proc/self/stat"))(t)
	self := fmt.Sprintln(os.Getpid(), strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))[20]) // who has the overlay, and lives
	must.Get(dir.MakeFolder(ScratchFolder + "/agent/" + overlayFolder))(t)
	must.Do(t, dir.Write(ScratchFolder+"/agent/"+overlayFolder+"/holder", []byte(self)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, KillLeftovers(ended, dir), "an overlay that is mounted still")
	must.Do(t, other.Wait(), "another program ended as")
}
