package publish

import (
	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// tip is the end of the task's branch where that is published.
type tip struct {
	sha, tree, parent, author string
	run                       string // that made it
	ours                      bool   // made by runs alone
	pushed                    bool   // stands where a push goes, not in the checkout alone
}

func tipOf(info *gitops.CommitInfo, pushed bool) *tip {
	if info == nil {
		return nil
	}
	t := &tip{sha: info.SHA, tree: string(info.Tree), author: info.Author, run: info.Trailer(gitops.TrailerRun), ours: info.Ours(), pushed: pushed}
	if len(info.Parents) == 1 {
		t.parent = info.Parents[0]
	}
	return t
}

// InfoOf is a commit of a forge as gitops tells of one.
func InfoOf(c *forge.Commit) *gitops.CommitInfo {
	return &gitops.CommitInfo{SHA: c.SHA, Tree: gitops.Tree(c.Tree), Parents: c.Parents, Message: c.Message, Author: c.Author}
}

// foreign says that a branch which a change of base may not be pushed over ends
// there.
func (t *tip) foreign(base gitops.Base) bool { return t != nil && !t.ours && t.sha != base.SHA }

func (t *tip) hasTree(p *Proposal) bool { return t.tree == string(p.Change.Tree) }

// holds says that it is the same change on the same base.
func (t *tip) holds(p *Proposal) bool { return t.hasTree(p) && t.parent == p.Base.SHA }

// madeBy says that the run itself made it, and was killed before it had published
// all.
func (t *tip) madeBy(p *Proposal) bool { return t != nil && t.sha == p.Committed && t.hasTree(p) }

// lease is the commit that a push may take the branch from; empty: there must be
// no such branch.
func (t *tip) lease() string {
	if t == nil || !t.pushed {
		return ""
	}
	return t.sha
}

func foreignCommit(branch string, t *tip) error {
	return outcome.Stopf(outcome.Conflict, "foreign_commit",
		"Branch %s ends in commit %s by %s, which no run made; merge or delete the branch, or give another with pull_request.branch.",
		branch, gitops.Short(t.sha), t.author)
}

// lostRace is the end of a run whose branch somebody moved while the run was about
// to push: now is where the branch ends since. Another run of the same task goes
// first; what it pushed may even be the same, and then there is no error.
func lostRace(err error, p *Proposal, now *tip) error {
	switch {
	case !now.ours:
		return foreignCommit(p.Task.Branch, now)
	case now.holds(p):
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "other_run",
		"Another run of this task (%s) pushed to %s first, and its change stands there.", now.run, p.Task.Branch).Because(err)
}
