package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/agent-ci/agent-ci/policy/must"
)

// completionScript writes a shell's script to a file, next to what there is to
// complete.
func completionScript(t *testing.T, shell string) (file string) {
	t.Helper()
	out := must.Get(exec.Command(binary, "completion", shell).Output())(t)
	dir := t.TempDir()
	for _, folder := range []string{"runs", "src"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "job one.yml"), nil, 0o644))
	file = filepath.Join(dir, "completion")
	must.Do(t, os.WriteFile(file, out, 0o644))
	return file
}

func needs(t *testing.T, shell string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("there is no %s", shell)
	}
}

// pathWithProgram is a PATH on which the scripts find agent-ci.
func pathWithProgram() string {
	return filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH")
}

// said runs a script of a shell next to the file.
func said(t *testing.T, file, shell, script string) string {
	t.Helper()
	cmd := exec.Command(shell, "-c", script)
	cmd.Dir = filepath.Dir(file)
	cmd.Env = []string{"PATH=" + pathWithProgram(), "HOME=" + t.TempDir(), "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	must.Do(t, err, shell, out)
	return string(out)
}

func TestBashCompletion(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	file := completionScript(t, "bash")
	for _, test := range []struct {
		name string
		line []string // the last word is the one that is completed
		want []string
	}{
		{"commands", []string{"re"}, []string{"repair", "resume", "replay", "report"}},
		{"flags", []string{"run", "--prompt"}, []string{"--prompt", "--prompt-file"}},
		{"a closed list", []string{"run", "--publish", ""}, []string{"github", "local", "none"}},
		{"a closed list behind =", []string{"run", "--publish", "=", "l"}, []string{"local"}},
		{"a closed list right behind =", []string{"report", "--format", "="}, []string{"html", "markdown"}},
		{"modes", []string{"sandbox", "--mode", "r"}, []string{"read-only"}},
		{"networks", []string{"sandbox", "--network", "l"}, []string{"loopback"}},
		{"outcomes", []string{"run", "--fail-on", "no"}, []string{"none", "no_changes"}},
		{"workflows", []string{"init", "--workflow", "s"}, []string{"schedule", "step"}},
		{"shells", []string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		{"a subcommand that may be left away", []string{"runs", ""}, []string{"prune"}},
		{"subcommands", []string{"campaign", "stat"}, []string{"status"}},
		{"flags of a subcommand", []string{"campaign", "status", "--"}, []string{"--format", "--ledger", "--help"}},
		{"a file behind a subcommand", []string{"campaign", "status", "job"}, []string{"job", "one.yml"}},
		{"forms of a campaign", []string{"campaign", "status", "--format", "m"}, []string{"markdown", "matrix"}},
		{"a folder", []string{"run", "--repo", ""}, []string{"runs", "src"}},
		{"a run directory", []string{"resume", "r"}, []string{"runs"}},
		{"text", []string{"run", "--prompt", ""}, nil},
		{"no arguments", []string{"version", ""}, nil},
		{"commands for help", []string{"help", "val"}, []string{"validate"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			words := "agent-ci"
			for _, word := range test.line {
				words += " '" + word + "'"
			}
			out := said(t, file, "bash", "source ./completion; COMP_WORDS=("+words+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _agent_ci; [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"")
			got := strings.Fields(out)
			slices.Sort(got)
			slices.Sort(test.want)
			must.Same(t, strings.Join(test.want, " "), strings.Join(got, " "))
		})
	}
}

// Keys of a person make whole words, in bash and zsh as they are used.
func TestCompletionOnTerminal(t *testing.T) {
	t.Parallel()
	for _, shell := range []struct {
		name, load string
		argv       []string
		want       string
	}{
		{"bash", "source ./completion", []string{"bash", "--norc", "-i"}, "<run><--publish><local><job one.yml>\n<report><--format><markdown><runs/>\n"},
		{"zsh", "autoload -Uz compinit && compinit -u -D; source ./completion", []string{"zsh", "-f", "-i"}, "<run><--publish><local><job one.yml>\n<report><--format><markdown><runs>\n"},
	} {
		t.Run(shell.name, func(t *testing.T) {
			needs(t, shell.name)
			file := completionScript(t, shell.name)
			cmd := exec.Command(shell.argv[0], shell.argv[1:]...)
			cmd.Dir = filepath.Dir(file)
			cmd.Env = []string{"PATH=" + pathWithProgram(), "HOME=" + t.TempDir(), "TERM=dumb", "LC_ALL=C", "PS1=$ "}
			terminal := must.Get(pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200}))(t)
			defer terminal.Close()
			killLate(t, cmd)
			// The command is a function that keeps its words, so that nothing runs.
			keys := shell.load + "; agent-ci() { printf '<%s>' \"$@\" >> words; echo >> words; }\r" +
				"agent-ci run --pub\tlo\tjob\t\r" + "agent-ci report --form\tma\tru\t\r" + "exit\r"
			must.Do(t, must.Err(terminal.WriteString(keys)))
			var screen strings.Builder
			buffer := make([]byte, 4096)
			for {
				n, err := terminal.Read(buffer)
				screen.Write(buffer[:n])
				if err != nil {
					break
				}
			}
			_ = cmd.Wait() // the status is that of the last command
			got, err := os.ReadFile(filepath.Join(filepath.Dir(file), "words"))
			must.Do(t, err, screen.String())
			must.Same(t, shell.want, string(got), screen.String())
		})
	}
}

func TestFishCompletion(t *testing.T) {
	t.Parallel()
	needs(t, "fish")
	file := completionScript(t, "fish")
	for _, test := range []struct {
		line string
		want []string
	}{
		{"agent-ci val", []string{"validate"}},
		{"agent-ci run --publ", []string{"--publish"}},
		{"agent-ci run --publish n", []string{"none"}},
		{"agent-ci report run --f", []string{"--format"}},
		{"agent-ci validate job", []string{"job one.yml"}},
		{"agent-ci report ru", []string{"runs/"}},
		{"agent-ci run --publish=l", []string{"--publish=local"}},
		{"agent-ci schema ", []string{"campaign", "job"}},
		{"agent-ci campaign stat", []string{"status"}},
		{"agent-ci campaign status job", []string{"job one.yml"}},
	} {
		out := said(t, file, "fish", "source ./completion; complete -C '"+test.line+"'")
		var got []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			got = append(got, strings.ReplaceAll(word, `\ `, " "))
		}
		must.Same(t, test.want, got, test.line)
	}
}

var helpFlag = regexp.MustCompile(`(?m)^  --([a-z-]+)`)

// What the help shows is what is completed, for every command that there is.
func TestCompletionMatchesHelp(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	file := completionScript(t, "bash")
	for _, command := range commandNames(t) {
		help := must.Get(exec.Command(binary, command, "--help").Output())(t)
		want := []string{"--help"}
		for _, flag := range helpFlag.FindAllStringSubmatch(string(help), -1) {
			want = append(want, "--"+flag[1])
		}
		got := strings.Fields(said(t, file, "bash", "source ./completion; COMP_WORDS=(agent-ci "+command+" --); COMP_CWORD=2; _agent_ci; echo ${COMPREPLY[@]}"))
		slices.Sort(got)
		slices.Sort(want)
		must.Same(t, want, got, command)
	}
}

// commandNames are the commands that the program lists.
func commandNames(t *testing.T) []string {
	t.Helper()
	out := must.Get(exec.Command(binary, "help").Output())(t)
	_, list, _ := strings.Cut(string(out), "Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var names []string
	for line := range strings.Lines(list) {
		names = append(names, strings.Fields(line)[0])
	}
	if len(names) < 10 {
		t.Fatalf("the overview names %d commands:\n%s", len(names), out)
	}
	return names
}
