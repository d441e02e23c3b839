package sandbox

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// heldOfGit has a sandbox hold what a run has it hold of git.
func heldOfGit(f grants.Folders) guard.Checkout {
	return guard.Checkout{Root: f.Workspace, Home: f.Home, Environ: f.Environ}
}

// The repository that is worked in is read by git as ever, in every tier.
func TestGitReadsItsRepository(t *testing.T) {
	gittest.Program(t) // or skip
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, func(o *Options) {
			repo := gittest.Repo{T: t, Dir: o.Workspace}
			repo.Git("init", "-q")
			repo.Git("config", "user.name", "Script")
			repo.Git("config", "user.email", "script@example.invalid")
			repo.Commit("begin")
			repo.Write("file", "one\n")
			repo.Commit("add a file")
		})
		got := run(t, box, o, `git config --global --get safe.directory >/dev/null; echo two >>file && git status --short && git diff --stat && git log --oneline && git blame -s file && git show --stat HEAD && git ls-files`)
		must.Contain(t, got, " M file", "1 insertion", "add a file", "begin", "1) one", "2) two")
	})
}

func TestUserGitSettingsLoseCredentials(t *testing.T) {
	home := t.TempDir()
	put(t, filepath.Join(home, "store"), secret, 0o644)
	put(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = A\n[credential]\n\thelper = store --file "+filepath.Join(home, "store")+
		"\n[url \"https://x:"+secret+"@github.com/\"]\n\tinsteadOf = https://github.com/\n", 0o644)
	put(t, filepath.Join(home, ".config/git/config"), "[[[ "+secret, 0o644)
	for _, tier := range []string{"namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			box, o := confined(t, tier, func(o *Options) { o.Home, o.Environ = home, []string{"HOME=" + home} })
			got := run(t, box, o, "cd "+home+"; cat .gitconfig store .config/git/config 2>&1; true")
			if strings.Contains(got, secret) || tier == "namespaces" && !strings.Contains(got, "name = A") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestLandlockRefusesGitCredentials(t *testing.T) {
	requireTier(t, "landlock")
	o := newOptions(t)
	put(t, filepath.Join(o.Workspace, ".git/config"), "[http]\n\textraheader = x\n", 0o644)
	o.disabledLayers = []string{layerNamespaces}
	o.Outside = heldOfGit(o.Folders)
	_, err := Open(t.Context(), o)
	if unavailable := (*UnavailableError)(nil); !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "). Check out without credentials (actions/checkout: persist-credentials: false), allow") {
		t.Errorf("got %v", err)
	}
}

func TestWorktreeGitFolderIsReadOnly(t *testing.T) {
	repository := t.TempDir()
	put(t, filepath.Join(repository, "config"), "[core]\n", 0o644)
	put(t, filepath.Join(repository, "worktrees/w/commondir"), "../..\n", 0o644)
	box, o := confined(t, "namespaces", func(o *Options) {
		put(t, filepath.Join(o.Workspace, ".git"), "gitdir: "+filepath.Join(repository, "worktrees/w")+"\n", 0o644)
	})
	got := run(t, box, o, "cd "+repository+"; for f in worktrees/w/HEAD config hooks "+o.Workspace+"/.git; do touch $f 2>&1; done; cat config")
	if strings.Count(got, "Read-only file system") != 4 || !strings.Contains(got, "[core]") {
		t.Errorf("got %q", got)
	}
}
