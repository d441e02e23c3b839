package repository_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// settings are what the configuration says, read with git and without it.
func settings(t *testing.T, dir string) map[string]repository.Settings {
	t.Helper()
	return map[string]repository.Settings{
		"with git": open(t, dir, gittest.Program(t)).Settings, "without git": open(t, dir, "").Settings,
	}
}

func TestTheConfigurationIsReadAlikeWithoutGit(t *testing.T) {
	for name, lines := range map[string]string{
		"defaults":        "",
		"line endings":    "[core]\n\tautocrlf = INPUT\n\teol = CRLF\n",
		"truth values":    "[core]\n\tfileMode = no\n\tsymlinks = 0\n\tignoreCase\n\ttrustctime = off\n\tprecomposeUnicode = 1\n",
		"the last counts": "[core]\n\tignoreCase = true\n\tignoreCase = false\n",
		"stat data":       "[core]\n\tcheckStat = Minimal\n",
		"filters":         "[filter \"Big File\"]\n\tclean = \"a b\" # no more\n\tsmudge = c\\\\d\n\trequired\n[FILTER \"lfs\"]\n\tProcess = git-lfs\n",
		"an own filter":   "[include]\n\tpath = filters\n",
		"an origin":       "[remote \"origin\"]\n\turl = https://a:b@example.org/x?token=1#y\n\turl = https://other.example\n",
		"ssh":             "[remote \"origin\"]\n\turl = ssh://git:secret@example.org/x\n",
		"submodules":      "[submodule \"s\"]\n\turl = https://a:b@example.org/s\n\tactive\n",
		"scp":             "[remote \"origin\"]\n\turl = git@example.org:o/r.git\n",
		"pushes":          "[remote]\n\tpushDefault = Mine\n[remote \"Mine\"]\n\tpushURL = a\n\tpushurl = b\n[branch \"a.B\"]\n\tpushRemote = x\n[url \"https://t@H.example/\"]\n\tinsteadOf = a:\n\tpushInsteadOf = b:\n",
		"no url":          "[remote \"origin\"]\n\turl = http://user:pa%ss@host/path\n",
		"an include":      "[include]\n\tpath = more\n",
		"conditions":      "[includeIf \"onbranch:main\"]\n\tpath = more\n",
		"another branch":  "[includeIf \"onbranch:other/\"]\n\tpath = more\n",
		"the folder":      "[includeIf \"gitdir:**/repo/.git\"]\n\tpath = more\n",
		"another folder":  "[includeIf \"gitdir/i:/nowhere/\"]\n\tpath = more\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.New(t)
			r.Seed()
			r.Write(".git/more", "[core]\n\tignoreCase = yes\n\tautocrlf = true\n")
			r.Write(".git/filters", "[filter \"x.Y\"]\n\tclean = cat\n")
			r.Write(".git/config", r.Read(".git/config")+lines)
			read := settings(t, r.Dir)
			if d := cmp.Diff(read["with git"], read["without git"], cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-git +own):\n%s", d)
			}
		})
	}
}

func TestIncludesThatNeverEnd(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("config", "include.path", "more")
	r.Write(".git/more", "[include]\n\tpath = more\n")
	if _, err := repository.Open(t.Context(), r.Dir, "", t.TempDir(), ""); err == nil {
		t.Error("it was opened")
	}
}

func TestNoPasswordIsInAnOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://user:secret@example.org/o/r.git": "https://example.org/o/r.git",
		"https://secret@example.org/o/r?secret#s": "https://example.org/o/r",
		"ssh://git:secret@example.org/o/r":        "ssh://git@example.org/o/r",
		"http://user:sec%ret@host/path":           "http://host/path",
		"git@example.org:o/r.git":                 "git@example.org:o/r.git",
		"/some/folder":                            "/some/folder",
	} {
		r := gittest.New(t)
		r.Seed()
		r.Git("config", "remote.origin.url", address)
		for name, s := range settings(t, r.Dir) {
			gittest.Same(t, address+" "+name, want, s.Origin)
		}
	}
}

func TestNeedsGit(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("config", "filter.on.clean", "cat")
	r.Git("config", "filter.off.required", "true")
	s := open(t, r.Dir, "").Settings
	for line, want := range map[string]string{
		"* filter=on": "", "* filter=off": "", "* filter=none": "", "* -filter": "", "* text eol=crlf": "",
		"* working-tree-encoding=UTF-16": "working-tree-encoding", "* working-tree-encoding=utf-8": "", "* ident": "ident", "* -ident": "",
	} {
		attrs := rules.Resolve("file", false, rules.ParseAttributes([]byte(line), ""))
		if why, needs := s.NeedsGit(attrs); why != want || needs != (want != "") {
			t.Errorf("%s: %q, %t", line, why, needs)
		}
		if filter := s.FilterOf(attrs); (filter == "on") != (line == "* filter=on") {
			t.Errorf("%s: filter %q", line, filter)
		}
	}
	if s.Filters["on"].Required() || !s.Filters["off"].Required() {
		t.Error("the wrong filter is required")
	}
}

func TestNamesThatAreOne(t *testing.T) {
	for _, c := range []struct {
		settings repository.Settings
		a, b     string
		same     bool
	}{
		{repository.Settings{}, "A", "a", false},
		{repository.Settings{IgnoreCase: true}, "Ä/B", "ä/b", true},
		{repository.Settings{Precompose: true}, "a\u0308", "\u00e4", true},
		{repository.Settings{}, "a\u0308", "\u00e4", false},
	} {
		if got := c.settings.SameName(c.a) == c.settings.SameName(c.b); got != c.same {
			t.Errorf("%q and %q under %+v: %t", c.a, c.b, c.settings, got)
		}
		set := map[string]bool{c.settings.SameName(c.a): true}
		if got := c.settings.Covers(set, c.b+"/below"); got != c.same {
			t.Errorf("%q covers what is below %q: %t", c.a, c.b, got)
		}
	}
	if s := (repository.Settings{}); s.Covers(map[string]bool{"a/b": true}, "a") || s.Covers(map[string]bool{"a": true}, "ab") {
		t.Error("it covers more than what is below")
	}
}

// The private git folder has what counted when it was made, and git reads there
// what was read before.
func TestThePrivateFolderKeepsWhatWasRead(t *testing.T) {
	r := gittest.New(t)
	r.Seed()
	r.Git("config", "core.autocrlf", "input")
	r.Git("config", "filter.f \"x\\y.clean", "echo \"a\tb\" \\ # c")
	r.Git("config", "core.hooksPath", r.Path("hooks"))
	r.Git("config", "core.excludesFile", r.Path("../mine"))
	r.Write("../mine", "*.mine\n")
	r.Write(".git/info/exclude", "*.ours\n")
	r.Write(".git/info/attributes", "*.x text\n")
	c := open(t, r.Dir, gittest.Program(t))
	again := open(t, r.Dir, "")
	r.Write("../mine", "")
	r.Remove(".git/info")
	r.Git("config", "core.autocrlf", "false")

	ask := func(key string) string {
		t.Helper()
		out, err := c.Git.Run(t.Context(), r.Dir, nil, "config", "-z", "--get", key)
		if err != nil {
			t.Fatal(key, err)
		}
		return string(out[:len(out)-1])
	}
	gittest.Same(t, "autocrlf", "input", ask("core.autocrlf"))
	gittest.Same(t, "hooks", os.DevNull, ask("core.hooksPath"))
	if out, err := c.Git.Run(t.Context(), r.Dir, nil, "config", "--get-regexp", "^filter"); program.ExitStatus(err) != 1 {
		t.Errorf("git would run the filters %q, %v", out, err)
	}
	lent := gittest.Repo{T: t, Dir: t.TempDir()}
	if err := c.FillGitDir(repository.TreeFolder{Dir: lent.Path(".git"), SeenAt: lent.Path(".git")}); err != nil {
		t.Fatal(err)
	}
	gittest.Same(t, "filter in a sandbox", "echo \"a\tb\" \\ # c", lent.Git("config", "--get", "filter.f \"x\\y.clean"))
	for _, one := range []*repository.Repository{c, again} {
		for path, want := range map[string]bool{"a.mine": true, "a.ours": true, "a.theirs": false} {
			ignored := false
			for _, list := range one.OuterIgnores() {
				is, _ := list.Decide(path, false, false)
				ignored = ignored || is
			}
			gittest.Same(t, path, want, ignored)
		}
		if is, _ := one.Exclude().Decide("a.mine", false, false); is {
			t.Error("rules of the user are among those of the repository")
		}
		weaker, strongest := one.OuterAttributes()
		if !rules.Resolve("a.x", false, append(weaker, strongest)...)["text"].IsSet() {
			t.Error("info/attributes is not among the attributes")
		}
	}
	private := c.Private
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(private, "HEAD")); err == nil {
		t.Error("the private folder is left")
	}
}

// Filters of the repository's own configuration are told from the user's, whatever file they are in.
func TestOwnFilters(t *testing.T) {
	global := os.Getenv("GIT_CONFIG_GLOBAL")
	text, err := os.ReadFile(global)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(mine, append(text, "[filter \"user\"]\n\tclean = cat\n[filter \"both\"]\n\tclean = cat\n\tsmudge = cat\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", mine)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "filter.given.process")
	t.Setenv("GIT_CONFIG_VALUE_0", "cat")
	r := gittest.New(t)
	r.Seed()
	r.Git("config", "include.path", "more")
	r.Write(".git/more", "[filter \"included\"]\n\tprocess = cat\n")
	r.Git("config", "filter.both.smudge", "tac")
	r.Git("config", "filter.own.clean", "cat")
	r.Git("config", "filter.user.required", "true")
	r.Git("worktree", "add", "-q", r.Path("../linked"))
	want := map[string]string{"user": "", "given": "", "both": "filter.both.smudge", "own": "filter.own.clean", "included": "filter.included.process"}
	for _, dir := range []string{r.Dir, r.Path("../linked")} {
		for how, s := range settings(t, dir) {
			for name, key := range want {
				if got := s.OwnFilter(name); got != key {
					t.Errorf("%s, %s: %q, want %q", how, name, got, key)
				}
			}
		}
	}
	r.Git("config", "extensions.worktreeConfig", "true")
	at := gittest.Repo{T: t, Dir: r.Path("../linked")}
	at.Git("config", "--worktree", "filter.there.clean", "cat")
	for how, s := range settings(t, at.Dir) {
		gittest.Same(t, how, "filter.there.clean", s.OwnFilter("there"))
	}
}

func TestLFSIsKnownByItsCommands(t *testing.T) {
	for _, c := range []struct {
		driver repository.FilterDriver
		is     bool
	}{
		{repository.FilterDriver{}, false},
		{repository.FilterDriver{"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process", "required": "true"}, true},
		{repository.FilterDriver{"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge --skip -- %f", "process": "git-lfs filter-process --skip"}, true},
		{repository.FilterDriver{"clean": "git-lfs clean -- %f"}, true},
		{repository.FilterDriver{"clean": "git-lfs clean -- %f;x"}, false},
		{repository.FilterDriver{"clean": "./git-lfs clean -- %f"}, false},
		{repository.FilterDriver{"clean": "git-lfs clean -- %f", "process": "x"}, false},
	} {
		if c.driver.LFS() != c.is {
			t.Errorf("%v: %t", c.driver, !c.is)
		}
	}
}
