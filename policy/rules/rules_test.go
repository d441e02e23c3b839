package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func load(t *testing.T, source string) *Set {
	t.Helper()
	return must.Get(Load(File{"t.rules", []byte(source)}))(t)
}

// matched are the matches of a command as "line decision prefix".
func matched(set *Set, command string) []string {
	var list []string
	for _, m := range set.Match(strings.Fields(command)) {
		list = append(list, strings.TrimPrefix(m.Rule.At.String(), "t.rules:")+" "+m.Rule.Decision.String()+" "+strings.Join(m.Prefix, " "))
	}
	return list
}

func TestMatch(t *testing.T) {
	const rules = `prefix_rule(pattern = ["git", "status"])
prefix_rule(pattern = ["git"], decision = "prompt")
prefix_rule(pattern = ["git", ["commit", "push"]], decision = "forbidden", justification = "the runner commits")
prefix_rule(pattern = [["bash", "sh"], ["-c", "-l"]])
prefix_rule(pattern = ["npm", ["i", "install"], ["--legacy-peer-deps", "--no-save"]])
prefix_rule(pattern = ["/opt/tool"], decision = "forbidden")
prefix_rule(pattern = ["make"])
host_executable(name = "make", paths = ["/usr/bin/make"])
prefix_rule(pattern = ["gone"])
host_executable(name = "gone", paths = [])
prefix_rule(pattern = [["/usr/bin/two", "two"]])`
	set := load(t, rules)
	for _, test := range []struct {
		command string
		want    []string
	}{
		{"ls", nil},
		{"git status", []string{"1 allow git status", "2 prompt git"}},
		{"git status -s", []string{"1 allow git status", "2 prompt git"}},
		{"git push origin", []string{"2 prompt git", "3 forbidden git push"}},
		{"git commit", []string{"2 prompt git", "3 forbidden git commit"}},
		{"git --no-pager push", []string{"2 prompt git"}},
		{"github", nil},
		{"bash -c x", []string{"4 allow bash -c"}},
		{"sh -l x", []string{"4 allow sh -l"}},
		{"bash -x", nil},
		{"bash", nil},
		{"npm i --no-save x", []string{"5 allow npm i --no-save"}},
		{"npm install", nil},
		// paths that end in a name
		{"/usr/bin/git push", []string{"2 prompt /usr/bin/git", "3 forbidden /usr/bin/git push"}},
		{"./git push", []string{"2 prompt ./git", "3 forbidden ./git push"}},
		{"/usr/bin/git status", []string{"1 allow /usr/bin/git status", "2 prompt /usr/bin/git"}},
		{"./git status", []string{"2 prompt ./git"}},
		{"/opt/tool", []string{"6 forbidden /opt/tool"}},
		{"tool", nil},
		{"make", []string{"7 allow make"}},
		{"/usr/bin/make", []string{"7 allow /usr/bin/make"}},
		{"/tmp/make", nil},
		{"/usr/bin/gone", nil},
		{"/usr/bin/two", []string{"11 allow /usr/bin/two"}},
	} {
		t.Run(test.command, func(t *testing.T) {
			must.Same(t, test.want, matched(set, test.command))
		})
	}
	must.None(t, (*Set)(nil).Match([]string{"git"}), "no rules match")
}

func TestPathDoesNotBypassForbidden(t *testing.T) {
	set := load(t, `prefix_rule(pattern = ["git"], decision = "forbidden")
host_executable(name = "git", paths = ["/usr/bin/git"])`)
	must.Same(t, 1, len(matched(set, "/tmp/git x")), "/tmp/git matches", "host_executable must not loosen what forbids")
}

func TestMatchesRulesOfAllFiles(t *testing.T) {
	set := must.Get(Load(
		File{"a.rules", []byte(`prefix_rule(pattern=["git"], decision="prompt")`)},
		File{"b.rules", []byte("\n" + `prefix_rule(pattern=["git", "commit"], decision="forbidden")` + "\n" + `prefix_rule(pattern=["git"])`)}))(t)
	want := []string{"a.rules:1 prompt git", "b.rules:2 forbidden git commit", "b.rules:3 allow git"}
	must.Same(t, want, matched(set, "git commit -m hi"))
}

func TestReach(t *testing.T) {
	set := load(t, `network_rule(host = "Api.Example.com:443", protocol = "https", decision = "allow")
network_rule("api.example.com.", "https_connect", "deny", justification = "not now")
network_rule(host = "[::1]:80", protocol = "http", decision = "prompt")
network_rule(host = "2606:0:0::0001", protocol = "https", decision = "prompt")`)
	for _, test := range []struct{ host, protocol, want string }{
		{"api.example.com", "https", "forbidden t.rules:2"},
		{"API.example.com.:8443", "https", "forbidden t.rules:2"},
		{"api.example.com:8443", "https", "forbidden t.rules:2"},
		{"api.example.com", "http", ""},
		{"::1", "http", "prompt t.rules:3"},
		{"2606::1", "https", "prompt t.rules:4"},
		{"example.com", "https", ""},
		{"", "https", ""},
	} {
		rule, ok := set.NetworkRule(test.host, test.protocol)
		got := ""
		if ok {
			got = rule.Decision.String() + " " + rule.At.String()
		}
		must.Same(t, test.want, got, test.host, test.protocol)
	}
}

func TestReportsMistakes(t *testing.T) {
	for _, test := range []struct{ name, source, want string }{
		{"syntax", "\nprefix_rule(", "t.rules:2:"},
		{"unknown name", "x = nothing", "t.rules:1:5: undefined: nothing"},
		{"no pattern", "prefix_rule()", "t.rules:1:12: prefix_rule: missing argument for pattern"},
		{"unknown argument", `prefix_rule(pattern=["a"], reason="x")`, `unexpected keyword argument "reason"`},
		{"empty pattern", `prefix_rule(pattern=[])`, "must not be empty"},
		{"empty program", `prefix_rule(pattern=[""])`, "must name a program"},
		{"number in pattern", `prefix_rule(pattern=["a", 1])`, "pattern[1] must be text or a list of alternatives, not int"},
		{"no alternatives", `prefix_rule(pattern=["a", []])`, "pattern[1]"},
		{"number in alternatives", `prefix_rule(pattern=["a", ["b", 1]])`, "pattern[1] must hold nothing but text"},
		{"decision", `prefix_rule(pattern=["a"], decision="forbid")`, `decision must be one of allow, prompt, forbidden, not "forbid"`},
		{"justification", `prefix_rule(pattern=["a"], justification=" ")`, "justification must be text"},
		{"example not matched", "\n\n" + `prefix_rule(pattern=["git", "status"], match=["git status", ["git", "push"]])`, `t.rules:3:1: the rule does not match its example "git push"`},
		{"example matched", `prefix_rule(pattern=["git"], not_match=["git --x status"])`, `the rule matches the example "git --x status" (not_match)`},
		{"example no command", `prefix_rule(pattern=["git"], match=["git $x"])`, "match[0] must be one plain command"},
		{"example two commands", `prefix_rule(pattern=["git"], match=["git; ls"])`, "match[0] must be one plain command"},
		{"empty example", `prefix_rule(pattern=["git"], not_match=[[]])`, "not_match[0] must be a command"},
		{"relative path", `host_executable(name="git", paths=["git"])`, "paths must be absolute"},
		{"name with a slash", `host_executable(name="/bin/git", paths=["/bin/git"])`, "bare name"},
		{"wrong base name", `host_executable(name="git", paths=["/bin/rg"])`, `paths must end in "git"`},
		{"wildcard host", `network_rule(host="*", protocol="http", decision="allow")`, "wildcard"},
		{"host with scheme", `network_rule(host="http://x", protocol="http", decision="allow")`, "without scheme"},
		{"host of another script", `network_rule(host="bücher.example", protocol="http", decision="deny")`, "ASCII form"},
		{"protocol", `network_rule(host="x", protocol="ftp", decision="allow")`, "protocol must be one of"},
		{"load", `load("x.rules", "y")`, "t.rules:1:1: load is not available"},
		{"function", "def f():\n  pass", "a function is not available"},
		{"lambda", "x = lambda: 1", "a function is not available"},
		{"operator", `x = "a" * 1000000000`, "the operator * is not available"},
		{"growing", `x = ["a"]` + "\nx += x", "the operator += is not available"},
		{"method", `x = "a".join(["b"])`, "is not available"},
		{"built-in function", `x = list(range(1000000000))`, "a call of anything but prefix_rule"},
		{"while", "while True: pass", "while"},
		{"deep", strings.Repeat("[", 50_000), "nested too deeply"},
		{"large", strings.Repeat("#", maxBytes+1), "larger than 256 KiB"},
		{"long", "x = [1,2,3,4,5,6,7,8,9,10]\ny = [1 for a in x for b in x for c in x for d in x for e in x for f in x]", "too many steps"},
		{"many", "x = [1,2,3,4,5,6,7,8,9,10]\nfor a in x:\n for b in x:\n  for c in x:\n   for d in x:\n    for e in x:\n     prefix_rule(pattern=['a'])", "more than 10000 rules"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(File{"t.rules", []byte(test.source)})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "t.rules:") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestReportsMistakesOfAllFiles(t *testing.T) {
	_, err := Load(File{"a.rules", []byte("x")}, File{"b.rules", nil}, File{"c.rules", []byte("\ny")})
	want := "a.rules:1:1: undefined: x\nc.rules:2:1: undefined: y"
	must.Same(t, want, fmt.Sprint(err))
}

func TestUnderstandsLoopsAndNames(t *testing.T) {
	set := load(t, `FLAGS = ["--force", "-f"]
for sub in ["push", "fetch"]:
    prefix_rule(pattern = ["git", sub, FLAGS], decision = "forbidden")
[prefix_rule(pattern = [p], match = [[p, "x"]]) for p in ["a", "b"]]`)
	for command, want := range map[string]int{"git push -f": 1, "git fetch --force": 1, "git push": 0, "a": 1, "b x": 1} {
		must.Same(t, want, len(matched(set, command)), command, "matches")
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		`prefix_rule(pattern=["git", ["a", "b"]], decision="prompt", match=["git a"], not_match=[["git"]], justification="x")`,
		`host_executable(name="git", paths=["/usr/bin/git"])`, `network_rule(host="[::1]:80", protocol="https", decision="deny")`,
		"x = [a for a in [1]]\nfor b in x:\n  pass", "x = [x, x]", "prefix_rule(*[1], **{})", "-1", "a[0]", "a.b", "not a", "{}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		set, err := Load(File{"f.rules", []byte(source)})
		if (set == nil) == (err == nil) {
			t.Errorf("set %v, error %v", set, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f.rules:") {
			t.Errorf("error without its place: %v", err)
		}
		if set != nil {
			set.Match([]string{"/x/git", "a"})
		}
	})
}
