package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// hooks makes as many files that git would obey.
func hooks(count int) func(gittest.Repo) {
	return func(r gittest.Repo) {
		for i := range count {
			r.Write(fmt.Sprintf(".git/hooks/hook-%02d", i), "#!/bin/sh\n")
		}
	}
}

// spoilObjects changes an object of the repository.
func spoilObjects(r gittest.Repo) {
	r.T.Helper()
	id := r.Git("rev-parse", "HEAD:README")
	name := filepath.Join(".git/objects", id[:2], id[2:])
	r.Remove(name)
	r.Write(name, "not an object")
}

func TestCommandsLeaveGitAlone(t *testing.T) {
	for name, test := range map[string]struct {
		level  sandbox.Level
		do     func(gittest.Repo)
		reason string
		words  string
		unread bool
	}{
		"nothing":                {sandbox.LevelLandlock, func(gittest.Repo) {}, "", "", false},
		"configuration":          {sandbox.LevelLandlock, func(r gittest.Repo) { r.Git("config", "core.fsmonitor", "evil") }, gitChanged, "config", false},
		"a few of many":          {sandbox.LevelLandlock, hooks(13), gitChanged, "3 more", false},
		"no more than ten":       {sandbox.LevelLandlock, hooks(2), gitChanged, "hook-01", false},
		"objects":                {sandbox.LevelLandlock, spoilObjects, gitChanged, "objects", true},
		"where git is read-only": {sandbox.LevelFull, hooks(1), "", "", false},
		"where all is allowed":   {sandbox.LevelNone, hooks(1), "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := seeded(t)
			w := opened(t, repo.Dir)
			ok(t, w.MarkGit(t.Context(), test.level))
			test.do(repo)
			wantStop(t, w.GitUnchanged(t.Context()), test.reason, test.words)
			if w.gitBad != (test.reason != "") || w.unread != test.unread {
				t.Errorf("spoiled %v, unread %v", w.gitBad, w.unread)
			}
		})
	}
}

func TestTheFirstMarkIsComparedWith(t *testing.T) {
	repo := seeded(t)
	w := opened(t, repo.Dir)
	ok(t, w.MarkGit(t.Context(), sandbox.LevelLandlock))
	hooks(1)(repo)
	again := &Workspace{rec: w.rec, root: w.root, checkout: w.checkout}
	ok(t, again.MarkGit(t.Context(), sandbox.LevelLandlock))
	wantStop(t, again.GitUnchanged(t.Context()), gitChanged)
}

func TestAMarkSaysNothingOfAnotherFolder(t *testing.T) {
	repo := seeded(t)
	w := opened(t, repo.Dir)
	later := &Workspace{rec: w.rec}
	ok(t, later.gitUnchangedSince(t.Context(), repo.Dir)) // there is no mark
	ok(t, w.MarkGit(t.Context(), sandbox.LevelLandlock))
	hooks(1)(repo)
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(repo.Dir, link))
	wantStop(t, later.gitUnchangedSince(t.Context(), link), gitChanged)
	ok(t, later.gitUnchangedSince(t.Context(), t.TempDir()))
	if later.gitMark != nil || w.rec.Has(gitMarkFile) {
		t.Error("the mark of another folder stays")
	}
	ok(t, w.rec.Write(gitMarkFile, []byte("{")))
	if err := later.gitUnchangedSince(t.Context(), repo.Dir); err == nil {
		t.Error("a mark that can't be read counts as none")
	}
}

func TestADamagedObjectIsTheDoingOfCommandsThatCouldWriteIt(t *testing.T) {
	damaged := fmt.Errorf("read: %w", &gitops.ObjectError{})
	for name, test := range map[string]struct {
		err    error
		level  sandbox.Level
		worked bool
		reason string
	}{
		"no object":       {fs.ErrNotExist, sandbox.LevelNone, true, ""},
		"no error":        {nil, sandbox.LevelNone, true, ""},
		"before commands": {damaged, sandbox.LevelNone, false, "damaged_repository"},
		"kept from them":  {damaged, sandbox.LevelFull, true, "damaged_repository"},
		"unconfined":      {damaged, sandbox.LevelNone, true, gitChanged},
		"Landlock alone":  {damaged, sandbox.LevelLandlock, true, gitChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := Folder(nil, "/")
			stop := w.ObjectFailure(test.err, test.level, test.worked)
			if stop == nil {
				if test.reason != "" {
					t.Fatal("it is no outcome")
				}
				return
			}
			wantStop(t, stop, test.reason)
			if !errors.Is(stop, test.err) || w.unread != (test.reason == gitChanged) {
				t.Errorf("%v, unread %v", stop, w.unread)
			}
		})
	}
}
