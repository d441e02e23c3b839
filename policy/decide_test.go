package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/rules"
)

func loadRules(t must.Test, source string) *rules.Set {
	t.Helper()
	return must.Get(rules.Load(rules.File{Name: "t.rules", Data: []byte(source)}))(t)
}

var (
	confined = Commands{Sandboxed: true, Writable: []string{"/ws/repo", "/tmp"}, Home: "/home/me"}
	readOnly = Commands{Sandboxed: true, Home: "/home/me"}
	full     = Commands{Writable: []string{"/ws/repo", "/tmp"}, Home: "/home/me"}
)

func script(text string) Request                  { return Request{Script: text, Dir: "/ws/repo"} }
func argv(words ...string) Request                { return Request{Argv: words, Dir: "/ws/repo"} }
func bash(text string) Request                    { return argv("bash", "-lc", text) }
func verdict(d Decision) string                   { return strings.TrimSpace(string(d.Action) + " " + d.Rule) }
func withRules(c Commands, s *rules.Set) Commands { c.Rules = s; return c }

// TestForcedRemovals has the reference implementation's cases, which are
// refused outside of a sandbox.
func TestForcedRemovals(t *testing.T) {
	const forced, everything = "refuse " + ruleForced, "refuse " + ruleEverything
	for _, test := range []struct {
		name string
		Request
		full, confined string
	}{
		{"root", argv("rm", "-rf", "/"), everything, everything},
		{"root, not recursive", argv("rm", "-f", "/"), everything, everything},
		{"by path", argv("/bin/rm", "-fr", "/tmp/example"), forced, "run_sandboxed"},
		{"separate options", argv("rm", "-r", "-f", "/tmp/example"), forced, "run_sandboxed"},
		{"long option", argv("rm", "--force", "/tmp/example"), forced, "run_sandboxed"},
		{"abbreviated option", argv("rm", "--fo", "/tmp/example"), forced, "run_sandboxed"},
		{"option behind", argv("rm", "/tmp/example", "-f"), forced, "run_sandboxed"},
		{"sudo", argv("sudo", "rm", "-rf", "/tmp/example"), forced, "run_sandboxed"},
		{"env", argv("env", "-i", "A=1", "rm", "-rf", "/tmp/example"), forced, "run_sandboxed"},
		{"trap", bash("trap 'rm -rf /tmp/example' EXIT"), forced, "run_sandboxed"},
		{"pipe", bash("printf x | rm -rf /tmp/example"), forced, "run_sandboxed"},
		{"condition", bash("if test -d /tmp/example; then rm --force /tmp/example; fi"), forced, "run_sandboxed"},
		{"a variable", bash(`rm -rf "$TARGET" >/dev/null`), forced, "run_sandboxed"},
		{"a loop", bash(`for target in /tmp/a /tmp/b; do rm -r -f "$target"; done`), forced, "run_sandboxed"},
		{"a substitution", bash(`echo "$(rm -rf /tmp/example)"`), forced, "run_sandboxed"},
		{"nested shells", bash(`bash -c 'bash -c "rm -rf /tmp/example"'`), forced, "run_sandboxed"},
		{"not forced", argv("rm", "-r", "/tmp/example"), "run", "run_sandboxed"},
		{"a file of that name", argv("rm", "--", "-f"), "run", "run_sandboxed"},
		{"text", bash("echo 'rm -rf /tmp/example'"), "run", "run_sandboxed"},
		{"a command in a variable", bash("cmd=rm; $cmd -rf /tmp/example"), "run", "run_sandboxed"},
		{"git and find", bash("git clean -fdx; find . -delete; git push --force; dd if=a of=b"), "run", "run_sandboxed"},
		// Differently from the reference implementation: a shell runs what stands
		// before a mistake.
		{"a mistake behind it", bash("rm -rf /tmp/example\n)"), forced, "run_sandboxed"},
		{"a mistake before it", bash("if then rm -rf /etc/example"), forced, forced},

		{"below the workspace", script("rm -rf build ./dist/*"), forced, "run_sandboxed"},
		{"by its full name", script("rm -rf /ws/repo/build"), forced, "run_sandboxed"},
		{"the workspace itself", script("rm -rf /ws/repo"), forced, forced},
		{"all in the workspace", script("rm -rf *"), forced, "run_sandboxed"},
		{"the folder above, at the root", script("rm -rf .."), everything, everything},
		{"out by ..", script("rm -rf build/../../other"), forced, forced},
		{"a neighbour of the workspace", script("rm -rf /ws/repo-other"), forced, forced},
		{"one of two", script("rm -f build /etc/passwd"), forced, forced},
		{"after cd", script("cd sub && rm -rf ../build"), forced, "run_sandboxed"},
		{"by xargs", script("ls | xargs rm -rf"), forced, "run_sandboxed"},
		{"find -exec", script(`find . -name x -exec rm -rf {} \;`), forced, "run_sandboxed"},
		{"home", script("rm -rf ~"), everything, everything},
		{"home as a variable", script(`rm -rf "$HOME"/`), everything, everything},
		{"all in home", script(`rm -rf ~/*`), everything, everything},
		{"in home", script(`rm -rf ~/x`), forced, forced},
		{"another home", script("rm -rf ~root"), everything, everything},
		{"a system folder, not forced", script("rm -r /usr"), everything, everything},
		{"all of root", script("rm -rf /*"), everything, everything},
		{"home set", script(`HOME=/tmp/x; rm -rf "$HOME"`), forced, "run_sandboxed"},
		{"nothing recursive", script("rm /usr"), "run", "run_sandboxed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.full, verdict(full.Decide(test.Request)), "without sandbox")
			must.Same(t, test.confined, verdict(confined.Decide(test.Request)), "workspace-write")
			wantReadOnly := test.confined
			if got := verdict(readOnly.Decide(test.Request)); got != wantReadOnly && !strings.HasPrefix(got, "refuse") {
				t.Errorf("read-only: %s, want %s or a refusal", got, wantReadOnly)
			}
		})
	}
}

// TestDecisionTable has the rows of the reference's table.
func TestDecisionTable(t *testing.T) {
	set := loadRules(t, `prefix_rule(pattern = ["ls"])
prefix_rule(pattern = ["rm", "-rf", "build"])
prefix_rule(pattern = ["deploy"], decision = "prompt", justification = "it costs money.")
prefix_rule(pattern = ["git", ["push", "commit"]], decision = "forbidden", justification = "the runner publishes")
prefix_rule(pattern = ["git"], decision = "prompt")
prefix_rule(pattern = ["bash"], decision = "forbidden")`)
	deep := strings.Repeat("sudo ", 10) + "ls"
	for _, test := range []struct {
		name string
		Request
		readOnly, workspace, full string
	}{
		{"no rule", script("make"), "run_sandboxed", "run_sandboxed", "run"},
		{"allowed", script("ls -l && ls"), "run_sandboxed allowed", "run_sandboxed allowed", "run allowed"},
		{"allowed in part", script("ls && make"), "run_sandboxed", "run_sandboxed", "run"},
		{"not understood", script("ls > x"), "run_sandboxed", "run_sandboxed", "run"},
		{"allowed removal", script("rm -rf build"), "run_sandboxed allowed", "run_sandboxed allowed", "run allowed"},
		{"allowed removal in what is not understood", script("(rm -rf build)"), "refuse " + ruleForced, "run_sandboxed", "refuse " + ruleForced},
		{"removal", script("rm -rf dist"), "refuse " + ruleForced, "run_sandboxed", "refuse " + ruleForced},
		{"prompt", script("ls; deploy"), "refuse t.rules:3", "refuse t.rules:3", "refuse t.rules:3"},
		{"forbidden", script("git push"), "refuse t.rules:4", "refuse t.rules:4", "refuse t.rules:4"},
		{"strictest of rules", script("git commit -m x"), "refuse t.rules:4", "refuse t.rules:4", "refuse t.rules:4"},
		{"strictest of commands", script("deploy; git push"), "refuse t.rules:4", "refuse t.rules:4", "refuse t.rules:4"},
		{"forbidden deep inside", script("for i in 1; do echo $(sudo env A=1 git push); done"), "refuse t.rules:4", "refuse t.rules:4", "refuse t.rules:4"},
		{"the shell of the tools is no command", script("ls"), "run_sandboxed allowed", "run_sandboxed allowed", "run allowed"},
		{"a shell of its own is one", bash("ls"), "refuse t.rules:6", "refuse t.rules:6", "refuse t.rules:6"},
		{"wrappers without end", script(deep), "refuse " + ruleExcess, "refuse " + ruleExcess, "refuse " + ruleExcess},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, mode := range []Commands{readOnly, confined, full} {
				d := withRules(mode, set).Decide(test.Request)
				v := verdict(d)
				if d.Allowed {
					v += " allowed"
				}
				got = append(got, v)
			}
			must.Same(t, []string{test.readOnly, test.workspace, test.full}, got)
		})
	}
}

func TestRefusalExplainsItself(t *testing.T) {
	set := loadRules(t, "\nprefix_rule(pattern = ['git', 'push'], decision = 'forbidden', justification = 'The runner publishes.')")
	d := withRules(confined, set).Decide(script("make && sudo git push origin main"))
	const words = "`git push origin main` was not run (t.rules:2). The rules forbid commands that begin with `git push`: The runner publishes. " +
		"Reach the goal in another way; where there is none, say so in your last message instead of trying variations of the command."
	must.Same(t, words, d.Words(), "Words")
	got := must.Get(json.Marshal(d))(t)
	const want = `{"action":"refuse","command":"git push origin main","rule":"t.rules:2","reason":"The rules forbid commands that begin with ` + "`git push`" +
		`: The runner publishes.","remedy":"` + otherWayRemedy + `.","allowed_by_rule":false,` +
		`"matched_rules":[{"rule":"t.rules:2","decision":"forbidden","prefix":["git","push"],"command":"git push origin main","via":["sudo"],"justification":"The runner publishes."}]}`
	must.Same(t, want, string(got), "JSON")
	for _, q := range []Request{script("rm -rf /"), script("rm -rf x"), script(strings.Repeat("sudo ", 10) + "ls")} {
		if d := full.Decide(q); d.Reason == "" || d.Remedy == "" || d.Rule == "" || d.Command == "" || strings.Contains(d.Words(), "..") {
			t.Errorf("%s: %q", q.commandLine(), d.Words())
		}
	}
}

// parts of command lines and rules, of which the property tests make more.
var (
	programs  = []string{"git", "rm", "ls", "sudo", "/usr/bin/git", "./rm", "env", "bash", "xargs"}
	arguments = []string{"push", "-rf", "-f", "build", "/", "~", "$X", "status", "-c", "'git push'", "git", "rm", "A=1", ".."}
	joints    = []string{" ", " ", " && ", " | ", "; ", " || ", " & ", "\n", " > ", " $(", ") ", " `", "\"", "(", " if ", "; then "}
)

func drawScript(t *rapid.T) string {
	var s strings.Builder
	for range rapid.IntRange(1, 12).Draw(t, "length") {
		s.WriteString(rapid.SampledFrom(slices.Concat(programs, arguments)).Draw(t, "word"))
		s.WriteString(rapid.SampledFrom(joints).Draw(t, "joint"))
	}
	return s.String()
}

func drawRule(t *rapid.T, label string, decisions ...string) string {
	pattern := []string{rapid.SampledFrom(programs).Draw(t, label)}
	for range rapid.IntRange(0, 2).Draw(t, label) {
		pattern = append(pattern, rapid.SampledFrom(arguments).Draw(t, label))
	}
	text, _ := json.Marshal(pattern)
	return `prefix_rule(pattern=` + string(text) + `, decision="` + rapid.SampledFrom(decisions).Draw(t, label) + "\")\n"
}

// TestRuleNeverLoosensRefusal: what is refused stays refused when a rule or a
// host_executable is added. The one exception is what an allow rule is for
// here: it lifts the built-in refusal of a forced removal.
func TestRuleNeverLoosensRefusal(t *testing.T) {
	hosts := []string{"", `host_executable(name="git", paths=["/usr/bin/git"])`, `host_executable(name="git", paths=[])`}
	rapid.Check(t, func(t *rapid.T) {
		source := ""
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			source += drawRule(t, "rule", "allow", "prompt", "forbidden")
		}
		added := drawRule(t, "added", "allow", "prompt", "forbidden") + rapid.SampledFrom(hosts).Draw(t, "host")
		mode := rapid.SampledFrom([]Commands{readOnly, confined, full}).Draw(t, "mode")
		q := script(drawScript(t))
		before := withRules(mode, loadRules(t, source)).Decide(q)
		after := withRules(mode, loadRules(t, source+added)).Decide(q)
		lifted := before.Rule == ruleForced && strings.Contains(added, "allow")
		if before.Action == Refuse && after.Action != Refuse && !lifted {
			t.Fatalf("%q was refused by %s and is not with %s", q.Script, before.Rule, added)
		}
		if after.Action == Run && mode.Sandboxed {
			t.Fatalf("%q leaves the sandbox", q.Script)
		}
	})
}

func TestAllowsNothingUnparsed(t *testing.T) {
	set := loadRules(t, `prefix_rule(pattern=[["git", "rm", "ls", "sudo", "/usr/bin/git", "./rm", "env", "bash", "xargs", "push", "-rf"]])`)
	rapid.Check(t, func(t *rapid.T) {
		d := withRules(confined, set).Decide(script(drawScript(t)))
		if d.Allowed && (d.Unclear != "" || d.Action == Refuse) {
			t.Fatalf("%+v", d)
		}
	})
}

func FuzzDecide(f *testing.F) {
	for _, seed := range []string{"rm -rf ~/x $HOME", "sudo rm -f -- /", "git push\n)", "xargs rm -rf", "bash -c 'rm -rf /'", "rm -rf \"\" ."} {
		f.Add(seed)
	}
	set := must.Get(rules.Load(rules.File{Name: "f.rules", Data: []byte(`prefix_rule(pattern=["git", "push"], decision="forbidden")`)}))(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, mode := range []Commands{withRules(confined, set), withRules(full, set)} {
			for _, q := range []Request{script(text), bash(text), argv(strings.Fields(text)...)} {
				d := mode.Decide(q)
				must.Same(t, d.Rule != "", d.Action == Refuse, text, d)
				must.Is(t, nil, must.Err(json.Marshal(d)))
			}
		}
	})
}
