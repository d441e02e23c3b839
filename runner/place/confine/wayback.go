package confine

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// pathFiles lists names and endings of files that contain paths to code: Python's editable
// installs, and build folders of CMake and Ninja.
var pathFiles = []string{".pth", ".egg-link", "_finder.py", "CMakeCache.txt", "build.ninja"}

// maxPathFileBytes is the size up to which such a file is read.
const maxPathFileBytes = 16 << 20

// CheckPathsToCheckout searches a new private tree for software that an earlier CI step installed by the
// checkout's path. Such software leads commands to the checkout, where checks would test the wrong code. It
// returns an outcome if commands can read the checkout, and otherwise only warns. It does nothing if the
// tree is at the checkout's path.
func (s *Sandboxes) CheckPathsToCheckout(ctx context.Context) error {
	if s.private.path == nil {
		return nil
	}
	found, err := s.pathsToCheckout(ctx)
	if err != nil {
		return fmt.Errorf("look for what leads to the checkout: %w", err)
	}
	switch {
	case len(found) == 0:
		return nil
	case s.level() == sandbox.LevelNone:
		return outcome.Stopf(outcome.InvalidInput, "leads_to_checkout",
			"Commands work in a copy of the checkout, and %s there leads back to the checkout, so that checks would test code that the agent did not change. Create it in setup instead of an earlier step, or confine commands (policy.sandbox).", markdown.SomeFiles(found))
	default:
		s.Record.Warn("leads_to_checkout", "Commands work in a copy of the checkout, and may not read the checkout, to which %s leads. Create it in setup instead of an earlier step.", markdown.SomeFiles(found))
	}
	return nil
}

// pathsToCheckout returns the links and files of the private tree that lead to the checkout.
func (s *Sandboxes) pathsToCheckout(ctx context.Context) (found []string, err error) {
	tree, root := s.treeFolder(), withoutLinks(s.Root)
	err = filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		rel, inside := pathname.Below(tree, path)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || !inside:
			return nil //nolint:nilerr // commands can't read it either
		case rel == ".git" && e.IsDir():
			return fs.SkipDir
		}
		isLink := e.Type()&fs.ModeSymlink != 0
		if isLink && isBelowAny(path, []string{root}) || isPathFile(e) && mentionsFolder(path, s.Root, root) {
			found = append(found, filepath.ToSlash(rel))
		}
		return nil
	})
	return found, err
}

// isPathFile reports whether a regular file may contain paths to code, and is small enough to read.
func isPathFile(e fs.DirEntry) bool {
	if !e.Type().IsRegular() || !slices.ContainsFunc(pathFiles, func(end string) bool { return strings.HasSuffix(e.Name(), end) }) {
		return false
	}
	info, err := e.Info()
	return err == nil && info.Size() <= maxPathFileBytes
}

// mentionsFolder reports whether a file contains the path of a folder or of something below it.
func mentionsFolder(file string, folders ...string) bool {
	content, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(folders, func(folder string) bool { return containsPath(content, folder) })
}

// containsPath reports whether a text contains the path, not only as the start of a longer name.
func containsPath(text []byte, path string) bool {
	for {
		_, after, found := bytes.Cut(text, []byte(path))
		if !found {
			return false
		}
		if len(after) == 0 || !isNameByte(after[0]) {
			return true
		}
		text = after
	}
}
