package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/must"
)

// A worktree of a repository elsewhere, whose configuration and the user's hold
// credentials.
func TestListsRestrictions(t *testing.T) {
	base := realTempDir(t)
	in := func(name string) string { return filepath.Join(base, name) }
	for name, content := range map[string]string{
		"work/.git":            "gitdir: ../main/.git/worktrees/w\n",
		"main/.git/config":     "[core]\n\tbare = false\n[include]\n\tpath = more\n[http]\n\textraheader = hunter22\n",
		"main/.git/config.old": "[http]\n\textraheader = hunter22\n", "main/.git/worktrees/w/commondir": "../..\n",
		"main/.git/worktrees/w/config.worktree": "[user]\n\tname = A\n", "main/.git/modules/sub/config": "[credential]\n\thelper = store --file /store\n",
		"home/.gitconfig": "[user]\n\tname = A\n[url \"https://x:hunter22@example.com/\"]\n\tinsteadOf = https://example.com/\n",
		"xdg/git/config":  "[[[ hunter22", "home/global": "[core]\n",
	} {
		must.Write(t, in(name), content)
	}
	held, err := Checkout{
		Root: in("work"), Home: in("home"),
		Environ: []string{"XDG_CONFIG_HOME=" + in("elsewhere"), "XDG_CONFIG_HOME=" + in("xdg"), "GIT_CONFIG_GLOBAL=" + in("home/global"), "GIT_CONFIG_SYSTEM=/dev/null"},
	}.Restrictions([]string{in("work")}, []string{in("home")})
	orPanic(err)
	must.Same(t, []string{in("work/.git"), in("main/.git/worktrees/w"), in("main/.git")}, held.ReadOnly)
	for _, c := range []struct {
		file    string
		from    map[string][]byte
		cleaned bool
		stays   string
	}{
		{in("main/.git/config"), held.Cleaned, true, "bare = false"},
		{in("main/.git/modules/sub/config"), held.Cleaned, true, ""},
		{in("main/.git/worktrees/w/config.worktree"), held.Cleaned, false, ""},
		{in("main/.git/config.old"), held.Cleaned, false, ""},
		{in("home/.gitconfig"), held.UserCleaned, true, "https://example.com/"},
		{in("home/global"), held.UserCleaned, false, ""},
	} {
		cleaned, is := c.from[c.file]
		if is != c.cleaned || strings.Contains(string(cleaned), "hunter22") || strings.Contains(string(cleaned), "/store") || !strings.Contains(string(cleaned), c.stays) {
			t.Errorf("of %s is left %q", c.file, cleaned)
		}
	}
	for _, file := range []string{in("main/.git/more"), "/store", in("xdg/git/config")} {
		must.Same(t, true, slices.Contains(held.Secret, file), file, "is not secret", held.Secret)
	}
	must.Same(t, in("home/.gitconfig"), held.Variables["GIT_CONFIG_GLOBAL"], "git is led to")
	orPanic(os.Remove(in("home/.gitconfig")))
	held, err = Checkout{Root: in("home"), Home: in("home"), Environ: []string{"XDG_CONFIG_HOME=" + in("xdg")}}.Restrictions(nil, []string{in("home")})
	orPanic(err)
	if len(held.ReadOnly) > 0 || len(held.Cleaned) > 0 || held.Variables["GIT_CONFIG_GLOBAL"] != os.DevNull {
		t.Errorf("without a repository: %+v", held)
	}
}

// A configuration that can't be read as one ends the run where it is the
// repository's: git would end, too.
func TestHidesInvalidConfigurations(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"another language", "[[[", "read "},
		{"too large", strings.Repeat("#", regularfile.Small+1), "more than 8388608"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must.Write(t, filepath.Join(dir, ".git/config"), c.content)
			must.Fail(t, c.want, must.Err((Checkout{Root: dir}).Restrictions(nil, nil)))
			must.Fail(t, c.want, must.Err(Credentials(dir)))
		})
	}
}

func TestCredentials(t *testing.T) {
	dir := realTempDir(t)
	must.None(t, must.Get(Credentials(dir))(t), "without a repository")
	must.Write(t, filepath.Join(dir, ".git/config"), "[include]\n\tpath = there\n[include]\n\tpath = missing\n")
	must.Write(t, filepath.Join(dir, ".git/real"), "[core]\n")
	orPanic(os.Symlink("real", filepath.Join(dir, ".git/there")))
	files, err := Credentials(dir)
	orPanic(err)
	must.Same(t, []string{filepath.Join(dir, ".git/config"), filepath.Join(dir, ".git/real")}, files)
}
