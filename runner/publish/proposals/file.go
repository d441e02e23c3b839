package proposals

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/lessons"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// readBase returns the lessons file of the base commit and its lessons. Both are nil if the commit has none.
func readBase(ws *workspace.Workspace) ([]byte, []memory.Lesson, error) {
	raw, err := fileIn(ws.Checkout(), ws.Base().Tree)
	if err != nil {
		return nil, nil, err
	}
	all, problems := lessons.Parse(raw)
	if len(problems) > 0 {
		return raw, nil, problems
	}
	return raw, all, nil
}

// fileIn returns a tree's lessons file, or nil if it is missing. If a directory, link or too large file is
// there, the error is config.Problems.
func fileIn(in *gitops.Checkout, tree gitops.Tree) ([]byte, error) {
	raw, err := in.ReadFile(tree, lessons.Path, lessons.MaxSize)
	switch {
	case errors.As(err, new(*gitops.TooLargeError)):
		return nil, lessons.TooLarge()
	case !errors.Is(err, fs.ErrNotExist):
		return raw, err
	}
	if free, err := isPathFree(in, tree); err != nil || free {
		return nil, err
	}
	return nil, lessons.NoFile()
}

// isPathFree reports whether a tree has nothing at the path of the lessons file, and only folders above it.
func isPathFree(in *gitops.Checkout, tree gitops.Tree) (bool, error) {
	id, err := in.IDAt(tree, lessons.Path)
	if err != nil || id != "" {
		return false, err
	}
	folder := path.Dir(lessons.Path)
	if id, err = in.IDAt(tree, folder); err != nil {
		return false, err
	}
	if id == "" {
		return true, nil
	}
	entry, err := in.EntryIn(tree, folder)
	return entry.Kind == gitops.BaseFolder, err
}

// LostLesson is a lesson whose evidence was deleted.
type LostLesson struct {
	ID       string   `json:"id"`
	Evidence []string `json:"gone"` // evidence that no longer exists
}

// LessonsWithoutEvidence returns the base commit's lessons whose evidence was deleted.
func LessonsWithoutEvidence(ws *workspace.Workspace, j *job.Job) (lost []LostLesson, err error) {
	_, all, err := readBase(ws)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		missing := LostLesson{ID: l.ID}
		for _, text := range l.Evidence {
			exists, err := evidenceExists(ws.Checkout(), ws.Base(), j, text)
			if err != nil {
				return nil, err
			}
			if !exists {
				missing.Evidence = append(missing.Evidence, text)
			}
		}
		if len(missing.Evidence) > 0 {
			lost = append(lost, missing)
		}
	}
	return lost, nil
}

// evidenceExists reports whether evidence exists. A run as evidence always counts as existing.
func evidenceExists(checkout *gitops.Checkout, base gitops.Base, j *job.Job, text string) (bool, error) {
	e, err := lessons.ParseEvidence(text)
	switch {
	case err != nil:
		return false, err
	case e.Check != "":
		return slices.ContainsFunc(j.Verify, func(c job.VerifyCheck) bool { return c.Name == e.Check }), nil
	case e.Run != "":
		return true, nil
	}
	id, err := checkout.IDAt(base.Tree, e.Path)
	return id != "", err
}
