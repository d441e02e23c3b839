package repository_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestAddresses(t *testing.T) {
	const (
		origin = "[remote \"origin\"]\n\turl = https://me:secret@git.example/o/r.git\n"
		own    = "https://git.example/o/r.git"
		mine   = "[remote \"mine\"]\n\turl = https://git.example/me/r.git\n"
		alias  = "git@real.example:o/r.git"
	)
	home := t.TempDir()
	t.Setenv("HOME", home)
	gittest.Repo{T: t, Dir: home}.Write(".ssh/config", "Host alias\n\tHostname real.example\nHost forge.example\n\tHostname ssh.forge.example\n")
	for name, c := range map[string]struct {
		config, origin, setting string
		pushes                  []string
	}{
		"none":                  {"", "", "remote.origin", nil},
		"one":                   {origin, own, "remote.origin", []string{own}},
		"user and query":        {"[remote \"origin\"]\n\turl = \"https://secret@git.example/o/r.git?secret#s\"\n", own, "remote.origin", []string{own}},
		"no valid password":     {"[remote \"origin\"]\n\turl = http://user:sec%ret@host/path\n", "http://host/path", "remote.origin", []string{"http://host/path"}},
		"several":               {origin + "\turl = c:x\n", own, "remote.origin", []string{own, "c:x"}},
		"rewritten":             {origin + "[url \"ssh://git@git.example/\"]\n\tinsteadOf = https://me:secret@git.example/\n", "ssh://git@git.example/o/r.git", "remote.origin", []string{"ssh://git@git.example/o/r.git"}},
		"rewritten for pushes":  {mine + "[remote \"origin\"]\n\turl = " + own + "\n[url \"x:\"]\n\tpushInsteadOf = https://\n", own, "remote.origin", []string{"x:git.example/o/r.git"}},
		"to nowhere":            {origin + "\tpushurl =\n", own, "remote.origin", []string{""}},
		"another remote":        {origin + mine + "[remote]\n\tpushDefault = mine\n", own, "remote.pushDefault", []string{"https://git.example/me/r.git"}},
		"for the branch":        {origin + mine + "[remote]\n\tpushDefault = origin\n[branch \"bot/x\"]\n\tpushRemote = mine\n", own, "branch.bot/x.pushRemote", []string{"https://git.example/me/r.git"}},
		"for another branch":    {origin + mine + "[branch \"main\"]\n\tpushRemote = mine\n", own, "remote.origin", []string{own}},
		"an address":            {origin + "[remote]\n\tpushDefault = https://me:secret@git.example/x\n", own, "remote.pushDefault", []string{"https://git.example/x"}},
		"an alias of ssh":       {"[remote \"origin\"]\n\turl = git@alias:o/r.git\n", alias, "remote.origin", []string{alias}},
		"an alias in a URL":     {"[remote \"origin\"]\n\turl = ssh://alias:22/o/r.git\n", "ssh://real.example:22/o/r.git", "remote.origin", []string{"ssh://real.example:22/o/r.git"}},
		"fetched by a mirror":   {"[remote \"origin\"]\n\turl = https://forge.example/o/r.git\n[url \"https://mirror.example/\"]\n\tinsteadOf = https://forge.example/\n[url \"https://forge.example/\"]\n\tpushInsteadOf = https://forge.example/\n", "https://forge.example/o/r.git", "remote.origin", []string{"https://forge.example/o/r.git"}},
		"the forge by itself":   {"[remote \"origin\"]\n\turl = git@forge.example:o/r.git\n", "git@forge.example:o/r.git", "remote.origin", []string{"git@forge.example:o/r.git"}},
		"no host, but a folder": {"[remote \"origin\"]\n\turl = alias/o:r.git\n", "alias/o:r.git", "remote.origin", []string{"alias/o:r.git"}},
		"an option":             {"[remote \"origin\"]\n\turl = git@-oProxyCommand=x:o/r.git\n", "git@-oProxyCommand=x:o/r.git", "remote.origin", []string{"git@-oProxyCommand=x:o/r.git"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("ssh"); err != nil && strings.Contains(c.origin, "real.example") {
				t.Skip("needs ssh")
			}
			r := gittest.Seeded(t)
			r.Write(".git/config", r.Read(".git/config")+c.config)
			opened := must.Get(repository.Open(t.Context(), r.Dir, gittest.Program(t), t.TempDir(), "https://forge.example"))(t)
			defer opened.Close()
			urls, setting, err := opened.PushesTo(t.Context(), "bot/x")
			if err != nil || !slices.Equal(urls, c.pushes) || setting != c.setting || opened.Settings.Origin != c.origin {
				t.Errorf("origin %q, pushes %q by %s, %v", opened.Settings.Origin, urls, setting, err)
			}
		})
	}
}

// A user may configure origin for all repositories. git pushes there, but `git remote` knows no such remote.
func TestOriginOfUser(t *testing.T) {
	home := gittest.Repo{T: t, Dir: t.TempDir()}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home.Dir, "config"))
	const origin = "[remote \"origin\"]\n\turl = https://git.example/o/r.git\n"
	for config, pushes := range map[string]string{
		origin: "https://git.example/o/r.git",
		origin + "[url \"x:\"]\n\tpushInsteadOf = https://other.example/\n": "",
	} {
		home.Write("config", config)
		opened := must.Get(repository.Open(t.Context(), gittest.Seeded(t).Dir, gittest.Program(t), t.TempDir(), ""))(t)
		defer opened.Close()
		urls, _, err := opened.PushesTo(t.Context(), "")
		if err != nil || !slices.Equal(urls, []string{pushes}) || opened.Settings.Origin != "https://git.example/o/r.git" {
			t.Errorf("%sorigin %q, pushes %q, %v", config, opened.Settings.Origin, urls, err)
		}
	}
}
