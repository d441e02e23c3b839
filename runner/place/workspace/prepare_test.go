package workspace

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
)

// earlierRun commits as a run does, on a branch of its own that is checked out.
func earlierRun(branch string) func(gittest.Repo) {
	return func(r gittest.Repo) {
		base := r.Git("rev-parse", "HEAD")
		r.Git("checkout", "-q", "-b", branch)
		r.Write("README", "made by a run\n")
		r.Commit("A change.\n\n" + forge.TrailerRun + ": 1\n" + forge.TrailerBase + ": " + base)
	}
}

// all does one after the other.
func all(steps ...func(gittest.Repo)) func(gittest.Repo) {
	return func(r gittest.Repo) {
		for _, step := range steps {
			step(r)
		}
	}
}

func git(args ...string) func(gittest.Repo) { return func(r gittest.Repo) { r.Git(args...) } }

func TestRequiresBranchAsBase(t *testing.T) {
	says := func(branch string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return branch, err }
	}
	origin := func(r gittest.Repo) {
		r.Git("update-ref", "refs/remotes/origin/trunk", "HEAD~1")
		r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	}
	for name, test := range map[string]struct {
		make         func(gittest.Repo)
		wanted       BaseBranch
		base, reason string
	}{
		"a branch":                               {all(), BaseBranch{}, "main", ""},
		"detached":                               {git("checkout", "-q", "--detach"), BaseBranch{}, "", "no_base"},
		"detached, none needed":                  {git("checkout", "-q", "--detach"), BaseBranch{NoneNeeded: true}, "", ""},
		"detached, the forge says":               {git("checkout", "-q", "--detach"), BaseBranch{ForgeDefault: says("main", nil)}, "main", ""},
		"detached, the forge is unknown":         {git("checkout", "-q", "--detach"), BaseBranch{ForgeDefault: says("nowhere", nil)}, "", "unknown_base"},
		"an earlier run":                         {earlierRun("agent-ci/other"), BaseBranch{}, "main", ""},
		"an earlier run, none needed":            {earlierRun("agent-ci/other"), BaseBranch{NoneNeeded: true}, "main", ""},
		"an earlier run, the forge says":         {all(git("branch", "dev"), earlierRun("agent-ci/other")), BaseBranch{ForgeDefault: says("dev", nil)}, "dev", ""},
		"an earlier run, as configured":          {earlierRun("agent-ci/other"), BaseBranch{Configured: true}, "agent-ci/other", ""},
		"an earlier run on two branches":         {all(git("branch", "dev"), earlierRun("agent-ci/other")), BaseBranch{}, "", "no_base"},
		"two branches, origin's default":         {all(git("branch", "dev"), earlierRun("agent-ci/other"), origin), BaseBranch{}, "trunk", ""},
		"the task's branch, person's commit":     {git("checkout", "-q", "-b", "agent-ci/this"), BaseBranch{TaskBranch: "agent-ci/this"}, "", "no_base"},
		"another task's branch, person's commit": {git("checkout", "-q", "-b", "agent-ci/that"), BaseBranch{TaskBranch: "agent-ci/this"}, "agent-ci/that", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			test.make(repo)
			w := opened(t, repo.Dir)
			err := w.Prepare(t.Context(), CheckoutNeeds{Base: test.wanted, Path: ".", ExpectsChanges: true})
			outcometest.Want(t, err, test.reason)
			if err == nil && w.Base().Branch != test.base {
				t.Errorf("on %v", w.Base())
			}
		})
	}
	repo := gittest.Seeded(t)
	repo.Git("checkout", "-q", "--detach")
	w := opened(t, repo.Dir)
	must.Is(t, io.ErrUnexpectedEOF, w.Prepare(t.Context(), CheckoutNeeds{Base: BaseBranch{ForgeDefault: says("", io.ErrUnexpectedEOF)}, Path: "."}))
}

func TestRefusesUnusableCheckout(t *testing.T) {
	for name, test := range map[string]struct {
		make         func(gittest.Repo)
		path, reason string
	}{
		"whole":          {all(), ".", ""},
		"a folder":       {all(), "src/deep", ""},
		"a missing one":  {all(), "nowhere", "no_such_path"},
		"a file":         {all(), "README", "no_such_path"},
		"outside":        {func(r gittest.Repo) { r.Link("/", "out"); r.Commit("link") }, "out", "no_such_path"},
		"changed":        {func(r gittest.Repo) { r.Write("README", "mine") }, ".", "dirty_checkout"},
		"untracked":      {func(r gittest.Repo) { r.Write("new", "mine") }, ".", ""},
		"git is at work": {func(r gittest.Repo) { r.Write(".git/index.lock", "") }, ".", "checkout_in_use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			test.make(repo)
			rec := recordtest.New(t, "20260101T000000Z-00000000")
			w, err := Open(t.Context(), rec, Options{Dir: repo.Dir, Path: os.Getenv("PATH")})
			if err == nil {
				defer w.Close()
				must.Do(t, w.StartOn(t.Context(), ""))
				err = w.Prepare(t.Context(), CheckoutNeeds{Path: test.path})
			}
			outcometest.Want(t, err, test.reason)
		})
	}
}

// diverge adds an empty commit to main and another one to the branch other.
func diverge(r gittest.Repo) {
	r.Git("checkout", "-q", "-b", "other")
	r.Git("commit", "-q", "--allow-empty", "-m", "theirs")
	r.Git("checkout", "-q", "main")
	r.Git("commit", "-q", "--allow-empty", "-m", "ours")
}

// A run that changes the checkout needs one without an unfinished operation of git. git status may list no file then.
func TestRefusesUnfinishedOperation(t *testing.T) {
	commit := git("commit", "-q", "--allow-empty", "-m", "x")
	merge := all(diverge, git("merge", "-q", "--no-commit", "other"))
	bisect := all(commit, commit, git("bisect", "start", "main", "main~2"))
	local, none := CheckoutNeeds{ReceivesChange: true, ExpectsChanges: true}, CheckoutNeeds{ReceivesChange: true, ExpectsChanges: true, Base: BaseBranch{NoneNeeded: true}}
	for name, test := range map[string]struct {
		make         func(gittest.Repo)
		needs        CheckoutNeeds
		base, reason string
	}{
		"a merge":                   {merge, local, "", "operation_in_progress"},
		"a merge, uncommitted":      {merge, none, "", "operation_in_progress"},
		"a merge, for the forge":    {merge, CheckoutNeeds{ExpectsChanges: true}, "", ""},
		"a merge, for an answer":    {merge, CheckoutNeeds{ReceivesChange: true}, "", ""},
		"a bisection":               {bisect, local, "", "operation_in_progress"},
		"a bisection, uncommitted":  {bisect, none, "", ""},
		"a bisection, another base": {bisect, none, "main", "operation_in_progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			test.make(repo)
			w := opened(t, repo.Dir)
			must.Do(t, w.StartOn(t.Context(), test.base))
			test.needs.Path = "."
			outcometest.Want(t, w.Prepare(t.Context(), test.needs), test.reason)
		})
	}
}

func TestClonesIntoRunDirectory(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Git("branch", "dev")
	for name, test := range map[string]struct{ url, branch, begins, reason string }{
		"as it is":       {repo.Dir, "", "", ""},
		"a branch":       {repo.Dir, "dev", "", ""},
		"its base":       {repo.Dir, "dev", "main", ""},
		"unknown base":   {repo.Dir, "", "nowhere", "unknown_base"},
		"unknown branch": {repo.Dir, "nowhere", "", "not_found"},
		"nothing there":  {repo.Dir + "-gone", "", "", "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := recordtest.New(t, "20260101T000000Z-00000000")
			w, err := Clone(t.Context(), rec, CloneOptions{
				Options: Options{Path: os.Getenv("PATH")}, From: at(test.url), Repository: "octo/widgets", Branch: test.branch, StartOn: test.begins,
			})
			outcometest.Want(t, err, test.reason)
			if err != nil {
				if w != nil {
					t.Error("there is a workspace beside the error")
				}
				return
			}
			defer w.Close()
			if !w.Cloned() || w.Root() != rec.Join("checkout") || test.begins != "" && w.Base().Branch != test.begins {
				t.Errorf("%s on %v", w.Root(), w.Base())
			}
		})
	}
}

// overlayTree is an overlay in which no command has run.
type overlayTree struct{ privateTree }

func (overlayTree) Private() bool             { return false }
func (o overlayTree) GitFolder(string) string { return string(o.privateTree) + ".git" }
func (overlayTree) HasChanges(Changes) bool   { return false }

// What others change after the checkout was prepared is theirs, though an overlay of it is made later. What is
// hidden meanwhile is nobody's change.
func TestListsChangesByOthers(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write("mine", "untracked\n")
	repo.Write("secret", "hidden\n")
	w := opened(t, repo.Dir)
	must.Do(t, w.Prepare(t.Context(), CheckoutNeeds{Path: ".", ExpectsChanges: true}))
	repo.Write("theirs", "new\n")
	repo.Write("README", "theirs\n")
	w.checkout.Hide([]string{"secret"})
	must.Do(t, w.UseTree(t.Context(), overlayTree{privateTree(w.rec.Join("tree"))}))
	must.Same(t, []string{"README", "theirs"}, must.Get(w.changedByOthers(t.Context()))(t), "changed by others")
}
