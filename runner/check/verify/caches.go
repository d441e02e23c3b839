package verify

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/place/confine"
)

// cachesScratch names what the runs of a check on the base kept.
func cachesScratch(i int) string { return fmt.Sprintf("caches-%d", i+1) }

// cachesOf is what a check of a suite begins with; empty for the caches of setup. Runs that keep
// caches begin with those, too.
func (c Checks) cachesOf(s suite, i int) string {
	if kept := cachesScratch(i); !s.keeps && s.kind != appliesIf && c.Sandboxes.HasCaches(kept) {
		return kept
	}
	return ""
}

// leftovers notes what a check left in its tree that git ignores. Caches only save time, so that a
// failure, as of keepCaches, is a warning.
func (c Checks) leftovers(s suite, i int, found *[]string) func(context.Context, gitops.Layer) error {
	return func(ctx context.Context, layer gitops.Layer) error {
		paths, err := c.Workspace.Checkout().In(layer).Ignored(ctx, c.shown(s).Snapshot)
		if err != nil && ctx.Err() == nil {
			c.warnNotKept(i, err)
			return nil
		}
		*found = paths
		return err
	}
}

// keepCaches keeps what a run of a check on the base filled.
func (c Checks) keepCaches(ctx context.Context, p confine.Place, leftovers []string, i int) {
	if err := c.Sandboxes.KeepCaches(ctx, p, leftovers, cachesScratch(i)); err != nil && ctx.Err() == nil {
		c.warnNotKept(i, err)
	}
}

func (c Checks) warnNotKept(i int, err error) {
	c.Record.Warn("caches_not_kept", "What %s left in caches on the base could not be kept for its later runs: %v.", c.Job.Verify[i].Name, err)
}

// takesLeftovers says whether a check of a suite sees what its run on the base left in the tree. It does
// not where the change lacks a file of the base, or has another kind of file there: what a tool made of
// a source that is missing must make no check green. Nor does it where the change alters what git
// ignores.
func (c Checks) takesLeftovers(ctx context.Context, s suite, caches string) (bool, error) {
	if caches == "" || !c.Sandboxes.HasLeftovers(caches) {
		return false, nil
	}
	change, err := c.Workspace.Checkout().Between(ctx, c.Workspace.Base(), s.about)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(change.Files, func(f changeset.File) bool {
		return f.OldMode != "" && isRegular(f.OldMode) != isRegular(f.NewMode) || f.NewMode == "" || path.Base(f.Path) == ".gitignore"
	}), nil
}

// provenFile of what a check kept says that the check was green with it.
func provenFile(caches string) string { return path.Join(confine.ScratchFolder, caches, "proven") }

func (c Checks) cachesProven(caches string) bool { return c.Record.Has(provenFile(caches)) }

func (c Checks) proveCaches(caches string) error {
	if c.cachesProven(caches) {
		return nil
	}
	return c.Record.Write(provenFile(caches), nil)
}
