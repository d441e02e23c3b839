package repository_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestNeedsGit(t *testing.T) {
	r := gittest.Seeded(t)
	r.Git("config", "filter.on.clean", "cat")
	r.Git("config", "filter.off.required", "true")
	s := open(t, r.Dir).Settings
	for line, want := range map[string]bool{
		"filter=on": false, "filter=off": false, "filter=none": false, "filter=unset": false, "eol=crlf": false,
		"working-tree-encoding=UTF-16": true, "working-tree-encoding=utf-8": false, "ident=set": true, "ident=unset": false,
	} {
		name, value, _ := strings.Cut(line, "=")
		attrs := repository.Attributes{name: value}
		must.Same(t, want, s.NeedsGit(attrs), line)
		must.Same(t, line == "filter=on", s.FilterOf(attrs) == "on", line, "filter")
	}
	if s.Filters["on"].Required() || !s.Filters["off"].Required() {
		t.Error("the wrong filter is required")
	}
}

func TestRecognisesEqualNames(t *testing.T) {
	for _, c := range []struct {
		settings repository.Settings
		a, b     string
		same     bool
	}{
		{repository.Settings{}, "A", "a", false},
		{repository.Settings{FileRules: repository.FileRules{IgnoreCase: true}}, "Ä/B", "ä/b", true},
		{repository.Settings{FileRules: repository.FileRules{Precompose: true}}, "a\u0308", "\u00e4", true},
		{repository.Settings{}, "a\u0308", "\u00e4", false},
	} {
		must.Same(t, c.same, c.settings.SameName(c.a) == c.settings.SameName(c.b), c.a, c.b, c.settings)
		set := map[string]bool{c.settings.SameName(c.a): true}
		must.Same(t, c.same, c.settings.Covers(set, c.b+"/below"), c.a, "covers what is below", c.b)
	}
	if s := (repository.Settings{}); s.Covers(map[string]bool{"a/b": true}, "a") || s.Covers(map[string]bool{"a": true}, "ab") {
		t.Error("it covers more than what is below")
	}
}

// The private git folder has what counted when it was made, and git reads there
// what was read before.
func TestPrivateFolderKeepsConfiguration(t *testing.T) {
	r := gittest.Seeded(t)
	r.Git("config", "core.autocrlf", "input")
	r.Git("config", "filter.f \"x\\y.clean", "echo \"a\tb\" \\ # c")
	r.Git("config", "core.hooksPath", r.Path("hooks"))
	r.Git("config", "core.excludesFile", r.Path("../mine"))
	r.Write("../mine", "*.mine\n")
	r.Write(".git/info/exclude", "*.ours\n")
	r.Write(".git/info/attributes", "*.x text\n")
	c := open(t, r.Dir)
	r.Write("../mine", "")
	r.Remove(".git/info")
	r.Git("config", "core.autocrlf", "false")

	private := []string{"GIT_DIR=" + c.PrivateDir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	ask := func(key string) string { return r.GitWith(private, nil, "config", "--get", key) }
	must.Same(t, "input", ask("core.autocrlf"), "autocrlf")
	must.Same(t, os.DevNull, ask("core.hooksPath"), "hooks")
	must.Lack(t, r.GitWith(private, nil, "config", "--list"), "filter.")
	lent := gittest.Repo{T: t, Dir: t.TempDir()}
	must.Do(t, c.FillGitDir(repository.TreeFolder{Dir: lent.Path(".git"), SeenAt: lent.Path(".git")}))
	must.Same(t, "echo \"a\tb\" \\ # c", lent.Git("config", "--get", "filter.f \"x\\y.clean"), "filter in a sandbox")
	for path, want := range map[string]bool{"a.mine": true, "a.ours": true, "a.theirs": false} {
		ignored := false
		for _, list := range c.OuterIgnores() {
			is, _ := list.Decide(path, false, false)
			ignored = ignored || is
		}
		must.Same(t, want, ignored, path)
	}
	if is, _ := c.Exclude().Decide("a.mine", false, false); is {
		t.Error("rules of the user are among those of the repository")
	}
	must.Same(t, "*.x text\n", string(c.OuterAttributes()[2]), "attributes")
	must.Do(t, c.Close())
	must.Fail(t, "", must.Err(os.Lstat(filepath.Join(c.PrivateDir, "HEAD"))), "the private folder is left")
}

// Whatever commands without a sandbox write into the private git folder, git does what it would have done.
func TestRebuildsPrivateFolderBeforeUse(t *testing.T) {
	r := gittest.New(t)
	r.Write(".git/info/attributes", "*.x text=auto\n")
	r.Seed()
	r.Git("config", "core.autocrlf", "input")
	c := open(t, r.Dir)
	private := gittest.Repo{T: t, Dir: c.PrivateDir}
	sprung := filepath.Join(t.TempDir(), "sprung")
	evil := "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch " + sprung + "\n[filter \"f\"]\n\tclean = touch " + sprung + "\n[extensions]\n\tworktreeConfig = true\n"
	elsewhere := gittest.New(t)
	elsewhere.Write(".git/config", evil)
	for name, spoil := range map[string]func(){
		"config":           func() { private.Write("config", evil) },
		"its place":        func() { private.Remove("config"); private.Link(elsewhere.Path(".git/config"), "config") },
		"a folder":         func() { private.Remove("config"); private.Write("config/in/it", "x") },
		"another folder's": func() { private.Write("commondir", elsewhere.Path(".git")) },
		"of a work tree":   func() { private.Write("config", evil); private.Write("config.worktree", evil) },
		"attributes":       func() { private.Write("info/attributes", "* filter=f\n") },
	} {
		spoil()
		git, err := c.PrivateGit()
		must.Do(t, err, name)
		r.Write("a.x", name+"\r\n")
		out, err := git.With("GIT_INDEX_FILE="+filepath.Join(t.TempDir(), "index")).Run(t.Context(), r.Dir, strings.NewReader("a.x\n"), "update-index", "--add", "--stdin")
		must.Do(t, err, name, out)
		id := r.GitWith(nil, []byte(name+"\n"), "hash-object", "--stdin", "--no-filters")
		must.Same(t, "blob", r.GitWith([]string{"GIT_DIR=" + c.PrivateDir}, nil, "cat-file", "-t", id), name)
	}
	must.Fail(t, "", must.Err(os.Lstat(sprung)), "git ran a program")
}

// Filters of the repository's own configuration are told from the user's, whatever file they are in.
func TestDistinguishesOwnFilters(t *testing.T) {
	global := os.Getenv("GIT_CONFIG_GLOBAL")
	text := must.Get(os.ReadFile(global))(t)
	mine := filepath.Join(t.TempDir(), "gitconfig")
	must.Do(t, os.WriteFile(mine, append(text, "[filter \"user\"]\n\tclean = cat\n[filter \"both\"]\n\tclean = cat\n\tsmudge = cat\n"...), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", mine)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "filter.given.process")
	t.Setenv("GIT_CONFIG_VALUE_0", "cat")
	r := gittest.Seeded(t)
	r.Git("config", "include.path", "more")
	r.Write(".git/more", "[filter \"included\"]\n\tprocess = cat\n")
	r.Git("config", "filter.both.smudge", "tac")
	r.Git("config", "filter.own.clean", "cat")
	r.Git("config", "filter.user.required", "true")
	r.Git("worktree", "add", "-q", r.Path("../linked"))
	want := map[string]string{"user": "", "given": "", "both": "filter.both.smudge", "own": "filter.own.clean", "included": "filter.included.process"}
	for _, dir := range []string{r.Dir, r.Path("../linked")} {
		s := open(t, dir).Settings
		for name, key := range want {
			must.Same(t, key, s.OwnFilter(name), name)
		}
	}
	r.Git("config", "extensions.worktreeConfig", "true")
	at := gittest.Repo{T: t, Dir: r.Path("../linked")}
	at.Git("config", "--worktree", "filter.there.clean", "cat")
	s := open(t, at.Dir).Settings
	must.Same(t, "filter.there.clean", s.OwnFilter("there"), "of the work tree")
}

func TestRecognisesLFSByCommands(t *testing.T) {
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
		must.Same(t, c.is, c.driver.LFS(), c.driver)
	}
}
