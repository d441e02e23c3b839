package verify

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/place/confine"
)

// cachesScratch returns the scratch folder of the caches that check i filled on the base.
func cachesScratch(i int) string { return fmt.Sprintf("caches-%d", i+1) }

// cachesOf returns the caches that a check begins with: those that it filled on the base, or "" for setup's.
// Runs that fill caches begin with setup's.
func (c Checks) cachesOf(s suite, i int) string {
	kept := cachesScratch(i)
	beginsWithSetup := s.keepsCaches || s.kind == appliesIf
	if beginsWithSetup || !c.Sandboxes.HasCaches(kept) {
		return ""
	}
	return kept
}

// mayTakeLeftovers reports whether a check gets the ignored files that its run on the base left. It does not
// if the change touches a .gitignore, deletes a file or changes a file's kind: output of a deleted source must
// not make a check green.
func (c Checks) mayTakeLeftovers(ctx context.Context, s suite, caches string) (bool, error) {
	if caches == "" || !c.Sandboxes.HasLeftovers(caches) {
		return false, nil
	}
	change, err := c.Workspace.Checkout().ChangeBetween(ctx, c.Workspace.Base(), s.changeTree)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(change.Files, func(f changeset.File) bool {
		isDeleted := f.NewMode == ""
		changesKind := f.OldMode != "" && isRegular(f.OldMode) != isRegular(f.NewMode)
		return isDeleted || changesKind || path.Base(f.Path) == ".gitignore"
	}), nil
}

// provenFile exists if the check was green with these caches once.
func provenFile(caches string) string { return path.Join(confine.ScratchFolder, caches, "proven") }
