package repository_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/must"
)

// What git has begun is found though its result is HEAD, so that git status lists no file. On main, f
// has 1, 2 and 3 in three commits; same goes from 2 to 3 by itself.
func TestFindsUnfinishedOperation(t *testing.T) {
	const resolve, commit = "checkout -q HEAD -- .", "commit -q --allow-empty -m x"
	for name, test := range map[string]struct {
		git  []string // commands, of which those that stop fail
		want repository.Operation
	}{
		"nothing":         {nil, repository.Operation{}},
		"squashed":        {[]string{"merge -q --squash same"}, repository.Operation{}},
		"a merge":         {[]string{"merge -q --no-commit same"}, repository.Operation{Name: "a merge", Abort: "git merge --abort", TakesCommit: true}},
		"a cherry-pick":   {[]string{"cherry-pick same~1"}, repository.Operation{Name: "a cherry-pick", Abort: "git cherry-pick --abort", TakesCommit: true}},
		"several":         {[]string{"cherry-pick same~1 same", commit}, repository.Operation{Name: "a cherry-pick", Abort: "git cherry-pick --abort"}},
		"a revert":        {[]string{"revert --no-edit main~2", resolve}, repository.Operation{Name: "a revert", Abort: "git revert --abort", TakesCommit: true}},
		"several reverts": {[]string{"revert --no-edit main~2 main~1", resolve, commit}, repository.Operation{Name: "a revert", Abort: "git revert --abort"}},
		"a rebase":        {[]string{"rebase -q --exec false HEAD~1"}, repository.Operation{Name: "a rebase", Abort: "git rebase --abort"}},
		"a conflict":      {[]string{"rebase -q --onto main~2 HEAD~1", resolve}, repository.Operation{Name: "a rebase", Abort: "git rebase --abort"}},
		"by patches":      {[]string{"rebase -q --apply --onto main~2 HEAD~1", resolve}, repository.Operation{Name: "a rebase", Abort: "git rebase --abort"}},
		"a mailbox":       {[]string{"format-patch -q -1 -o ..", "am -q ../0001-3.patch"}, repository.Operation{Name: "a git am", Abort: "git am --abort"}},
		"a bisection":     {[]string{"bisect start HEAD HEAD~2"}, repository.Operation{Name: "a bisection", Abort: "git bisect reset"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.Seeded(t)
			for _, text := range []string{"1", "2", "3"} {
				r.Write("f", text+"\n")
				r.Commit(text)
			}
			r.Git("checkout", "-q", "-b", "same", "main~1")
			r.Write("f", "3\n")
			r.Commit("3 too")
			r.Git(strings.Fields(commit)...)
			r.Git("checkout", "-q", "main")
			linked := r
			linked.Dir = r.Path("../linked")
			r.Git("worktree", "add", "-q", "-b", "there", linked.Dir)
			for _, r := range []gittest.Repo{linked, r} {
				for _, command := range test.git {
					_ = r.TryGit(strings.Fields(command)...)
				}
				must.Same(t, "", r.Git("status", "--porcelain"), "changed files")
				must.Same(t, test.want, open(t, r.Dir).UnfinishedOperation(), "the operation in", r.Dir)
			}
		})
	}
}
