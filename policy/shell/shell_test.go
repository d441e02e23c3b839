package shell

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestPlainLists(t *testing.T) {
	for _, test := range []struct {
		name, script string
		want         [][]string
		unclear      string
	}{
		{"one command", `ls -l`, [][]string{{"ls", "-l"}}, ""},
		{"every joint", "ls && rg 'x y' | head -1; pwd || true\nid", [][]string{{"ls"}, {"rg", "x y"}, {"head", "-1"}, {"pwd"}, {"true"}, {"id"}}, ""},
		{"quotes within a word", `git "lo""g" --format='%h'x`, [][]string{{"git", "log", "--format=%hx"}}, ""},
		{"a test", `[ -f go.mod ] && go test`, [][]string{{"[", "-f", "go.mod", "]"}, {"go", "test"}}, ""},
		{"a comment", "ls # and more", [][]string{{"ls"}}, ""},
		{"nothing", " # nothing", nil, "no command"},
		{"a variable", `ls $HOME`, nil, "expansion"},
		{"a quoted variable", `ls "$HOME"`, nil, "expansion"},
		{"a substitution", `ls $(pwd)`, nil, "expansion"},
		{"a redirection", `ls > x`, nil, "redirection"},
		{"a pipe of both streams", `ls |& cat`, nil, "redirection"},
		{"a here-document", "cat <<E\nx\nE", nil, "redirection"},
		{"an assignment", `A=1 ls`, nil, "assignment"},
		{"a subshell", `(ls)`, nil, "compound"},
		{"a loop", `for i in 1 2; do ls; done`, nil, "compound"},
		{"the background", `ls &`, nil, "background"},
		{"a negation", `! ls`, nil, "negation"},
		{"a glob", `ls *.go`, nil, "glob"},
		{"a set", `ls [ab]`, nil, "glob"},
		{"braces", `ls {a,b}`, nil, "glob"},
		{"a tilde", `ls ~`, nil, "glob"},
		{"a backslash", `\ls`, nil, "glob"},
		{"escapes", `ls $'a\nb'`, nil, "escapes"},
		{"escapes in quotes", `ls "a\"b"`, nil, "escapes"},
		{"a mistake", `ls )`, nil, "parsed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for about, got := range map[string]Reading{
				"script": ReadScript(test.script), "argv": ReadArgv([]string{"bash", "-lc", test.script}),
			} {
				must.Same(t, test.want, got.Plain, about, "Plain (-")
				if !strings.Contains(got.Unclear, test.unclear) || (test.unclear == "") != (got.Unclear == "") {
					t.Errorf("%s: Unclear = %q, want %q", about, got.Unclear, test.unclear)
				}
			}
		})
	}
}

// TestFindsNestedCommands looks for `git push` in everything that can
// hold it.
func TestFindsNestedCommands(t *testing.T) {
	for _, script := range []string{
		`git push`, `git push origin main`, `/usr/bin/git push`, `git -C dir push`, `git -c a.b=c --no-pager push`, `git --git-dir=x push`,
		`ls; git push`, `ls && git push`, `true || git push`, `git push | cat`, `git push &`, `! git push`,
		`(git push)`, `{ git push; }`, `if true; then git push; fi`, `while git push; do :; done`, `for i in 1; do git push; done`,
		`case x in x) git push;; esac`, `f() { git push; }; f`, `echo $(git push)`, "echo `git push`", `echo "a $(git push) b"`, `cat <(git push)`,
		`x=$(git push)`, `export X="$(git push)"`, `echo ${x:-$(git push)}`, "cat <<E\n$(git push)\nE", `[[ $(git push) ]]`, `echo $(( $(git push) ))`,
		`git push > log`, `A=1 git push`, `time git push`, `coproc git push`,
		`"git" 'push'`, `g"i"t pu\sh`, `$'git' $'pus\x68'`, `\git push`,
		`env git push`, `env -i A=1 git push`, `env -u X -- git push`, `env -S 'git push'`, `env --split-string='git push'`, `sudo git push`, `sudo -u root -- git push`, `sudo A=1 git push`,
		`timeout 5 git push`, `timeout -k 1 --signal=KILL 5s git push`, `nice git push`, `nice -n 5 git push`, `nice -10 git push`, `nohup git push`,
		`ionice -c 3 git push`, `stdbuf -oL git push`, `setsid -w git push`, `/usr/bin/time -v git push`, `command git push`, `command -p git push`, `builtin git push`,
		`exec git push`, `exec -a x git push`, `xargs git push`, `echo x | xargs -n 1 -I{} git push {}`, `chroot /x git push`, `flock lock git push`, `flock lock -c 'git push'`,
		`busybox git push`, `strace -f -o x git push`, `npx -y git push`, `uv run git push`, `watch -n 1 git push`, `su root -c 'git push'`, `su -c 'git push' root`,
		`sh -c 'git push'`, `bash -lc 'git push'`, `bash -c -x 'git push'`, `bash -o pipefail -c 'ls; git push'`, `zsh -ec "git push"`, `bash -c "bash -c 'git push'"`,
		`sudo bash -c 'true && git push'`, `timeout 5 sh -c 'git push'`, `xargs sh -c 'git push'`, "bash <<E\ngit push\nE", "bash -s <<'E'\nls\ngit push\nE", `bash <<< 'git push'`,
		`eval git push`, `eval "git push"`, `trap 'git push' EXIT`, `trap -- 'git push' EXIT`, `alias p='git push'; p`,
		`find . -exec git push \;`, `find . -name x -execdir git push {} +`, `find . -ok true ';' -exec git push ';'`, `fd -x git push`,
		`{git,push}`, `git {push,-f}`, `{git,"push",$x}`, `sudo {git,push}`,
		`echo git push | sh`, `echo -n 'git push' | bash`, `echo -n -e 'git push' | bash`, `echo "git push $X" | sh -s`, `printf 'ls\ngit push\n' | sh`, `printf '%s %s' git push | sh`, `echo -e 'ls\ngit push' | sudo bash`,
		"cat <<'E' | sh\nls\ngit push\nE", `{ echo ls; echo git push; } | sh`, `echo git push | tee x | sh`, `(echo git push) |& env A=1 bash -x`, `cat <<< 'git push' | sh`,
		`fish -c 'git push'`, `tcsh -c 'git push'`, `pwsh -c 'git push'`, `npx -c 'git push'`, `npx --call 'git push'`, `npx --call='git push'`,
		`git submodule foreach git push`, `git submodule foreach --recursive 'git push'`, `git -C x submodule --quiet foreach "ls && git push"`, `git bisect run git push`, `git bisect run sh -c 'git push'`,
		`git rebase -x 'git push' main`, `git rebase -i --exec='git push' main`, `git rebase --exec 'make && git push'`, `git filter-branch --tree-filter 'git push' HEAD`, `git difftool -x 'git push'`,
		`git -c alias.p='!git push' p`, "git push\n)", "if then git push", `git push (`,
	} {
		t.Run(script, func(t *testing.T) {
			got := ReadScript(script)
			for _, c := range got.Commands {
				prefix := c.Prefix()
				if len(prefix) > 1 && programName(prefix[0]) == "git" && prefix[1] == "push" {
					return
				}
			}
			t.Errorf("git push is not among the commands: %v", got.Commands)
		})
	}
}

func TestIgnoresTextArguments(t *testing.T) {
	for _, script := range []string{
		`echo git push`, `echo 'git push'`, `echo "a; git push"`, "cat <<E\ngit push\nE", `# git push`, `grep 'git push' README.md`, `timeout 5 echo git push`,
		`sudo -u git push`, `command -v git push`, `git log push`, `x="git push"`, `sh script.sh git push`, `bash -c "$x" git push`, `git commit -m 'git push'`,
		`echo git push | cat`, `echo git push | sh -c 'cat'`, `echo git push | sh script.sh`, `echo {git,push}`, `git rebase main git push`, `printf 'git push' >x`,
		`nice -n 5 echo git push`, `xargs -I git push`, `find . -name git push`,
	} {
		t.Run(script, func(t *testing.T) {
			for _, c := range ReadScript(script).Commands {
				if prefix := c.Prefix(); len(prefix) > 1 && programName(prefix[0]) == "git" && prefix[1] == "push" {
					t.Errorf("git push is taken for a command in %v via %v", c, c.Via)
				}
			}
		})
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct {
		script string
		want   []Word
	}{
		{`rm -rf "$HOME"/x`, []Word{{"rm", true}, {"-rf", true}, {"$HOME/x", false}}},
		{`rm ${a:-b} $(x) {a,b}`, []Word{{"rm", true}, {"${…}", false}, {"$(…)", false}, {"a", true}, {"b", true}}},
		{`x{a,b{c,d}}"{e,f}" {1..3}x`, []Word{{"xa{e,f}", true}, {"xbc{e,f}", true}, {"xbd{e,f}", true}, {"…x", false}}},
		{`a\ b "c\"d\e" $'\x41\tB\'' 'e\f'`, []Word{{"a b", true}, {`c"d\e`, true}, {"A\tB'", true}, {`e\f`, true}}},
	} {
		got := ReadScript(test.script).Commands[0].Words
		must.Same(t, test.want, got, test.script)
	}
}

func TestReportsStartingPrograms(t *testing.T) {
	got := ReadScript(`ls; sudo env A=1 git push`)
	want := []Command{
		{Words: knownWords([]string{"ls"}), Top: 0},
		{Words: knownWords([]string{"sudo", "env", "A=1", "git", "push"}), Top: 1},
		{Words: knownWords([]string{"env", "A=1", "git", "push"}), Via: []string{"sudo"}, Top: 1},
		{Words: knownWords([]string{"git", "push"}), Via: []string{"sudo", "env"}, Top: 1},
	}
	must.Same(t, want, got.Commands)
}

func TestXargsCommandMayHaveMoreArguments(t *testing.T) {
	got := ReadScript(`xargs rm -rf`).Commands
	want := []Word{{"rm", true}, {"-rf", true}, {"…", false}}
	must.Same(t, want, got[len(got)-1].Words)
}

func TestDetectsDirectoryChanges(t *testing.T) {
	for script, want := range map[string]bool{
		`cd x && ls`: true, `pushd x`: true, `env -C x ls`: true, `HOME=/x ls`: true, `export HOME=/x`: true, `sudo env HOME=/x ls`: true, `ls x`: false, `A=1 ls`: false,
	} {
		must.Same(t, want, ReadScript(script).ChangesDir, script)
	}
}

func TestBoundsReading(t *testing.T) {
	deep := "git push"
	for range maxDepth + 2 {
		deep = "sudo " + deep
	}
	for name, script := range map[string]string{
		"programs within programs": deep,
		"too long":                 strings.Repeat("x", maxScript+1),
		"too many commands":        strings.Repeat("a;", maxCommands+1),
		"too many pipes":           strings.Repeat("true | sh | ", maxScript/20) + "true",
		"too many words":           "npx " + strings.Repeat("a ", maxPossibleStarts+1),
	} {
		if got := ReadScript(script); got.TooComplex == "" {
			t.Errorf("%s: all was read", name)
		}
	}
	for _, opener := range []string{"(", "$(", "{ ", "((", "$((", "$((~", "a[", "`", "if ", "while ", "case a in a) ", "f()", "time ", "(')'", "\"$(", "${a:-", "[[ (", "~ ", "a=("} {
		got := ReadScript(strings.Repeat(opener, 100_000/len(opener)) + "\ngit push")
		must.None(t, got.Plain, "taken for a plain list:", opener)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"ls && git push | cat; x", "bash -c 'sudo rm -rf \"$HOME\"'", "find . -exec rm {} +", "cat <<E\n$(x)\nE", "env -S 'a b' --split-string", "xargs -n", "sudo -u", "$'\\xff\\u00e9'", "(')'", "trap -- ''",
		"alias a=b =c", "git -c alias.x=!y -C", "timeout --", "flock x -c", "bash -o -c", "{a,b} [ ~",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		got := ReadScript(script)
		if len(got.Commands) > maxCommands {
			t.Errorf("%d commands", len(got.Commands))
		}
		if (got.Plain == nil) == (got.Unclear == "") {
			t.Errorf("Plain = %v and Unclear = %q", got.Plain, got.Unclear)
		}
		for _, c := range got.Commands {
			if len(c.Words) == 0 || len(c.Via) > maxDepth+1 || c.Top >= len(got.Plain) {
				t.Errorf("%+v", c)
			}
		}
		for _, argv := range got.Plain {
			if again := ReadArgv(argv); len(again.Commands) == 0 {
				t.Errorf("no command in %q", argv)
			}
		}
		ReadArgv(strings.Fields(script))
	})
}
