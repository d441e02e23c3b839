package repository

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Operation is something that git began in a work tree and did not finish.
type Operation struct {
	Name        string // with an article, such as "a merge"; "" for none
	Abort       string // the command that gives it up
	TakesCommit bool   // the next commit becomes a part of it
}

// operations lists git's operations by the files that show them. Those that take the next commit go first: a
// rebase can stop in one of them.
var operations = []struct {
	file, start string // a file of the git folder, and how it starts
	Operation
}{
	{"MERGE_HEAD", "", Operation{"a merge", "git merge --abort", true}},
	{"CHERRY_PICK_HEAD", "", Operation{"a cherry-pick", "git cherry-pick --abort", true}},
	{"REVERT_HEAD", "", Operation{"a revert", "git revert --abort", true}},
	{"rebase-merge", "", Operation{"a rebase", "git rebase --abort", false}},
	{"rebase-apply/applying", "", Operation{"a git am", "git am --abort", false}},
	{"rebase-apply", "", Operation{"a rebase", "git rebase --abort", false}},
	{"sequencer/todo", "pick ", Operation{"a cherry-pick", "git cherry-pick --abort", false}},
	{"sequencer/todo", "revert ", Operation{"a revert", "git revert --abort", false}},
	{"BISECT_LOG", "", Operation{"a bisection", "git bisect reset", false}},
}

// UnfinishedOperation returns the operation that git status shows, or a zero Operation.
func (r *Repository) UnfinishedOperation() Operation {
	for _, o := range operations {
		path := filepath.Join(r.GitDir, o.file)
		if _, err := os.Lstat(path); err == nil && startsWith(path, o.start) {
			return o.Operation
		}
	}
	return Operation{}
}

// startsWith reports whether the text of a file starts with start. Every path starts with "".
func startsWith(path, start string) bool {
	if start == "" {
		return true
	}
	text, err := regularfile.Read(path, regularfile.Small)
	return err == nil && strings.HasPrefix(string(text), start)
}
