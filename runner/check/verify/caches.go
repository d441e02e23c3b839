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

// cachesScratch returns the scratch name of caches kept from a check's runs on the base.
func cachesScratch(i int) string { return fmt.Sprintf("caches-%d", i+1) }

// cachesOf returns the caches for a check, "" for those of setup. Runs that fill caches begin with
// those too.
func (c Checks) cachesOf(s suite, i int) string {
	if kept := cachesScratch(i); !s.keepsCaches && s.kind != appliesIf && c.Sandboxes.HasCaches(kept) {
		return kept
	}
	return ""
}

// leftovers returns a function that records the files ignored by git that a check left in its tree.
// Caches only save time, so a failure is a warning, as in keepCaches.
func (c Checks) leftovers(s suite, i int, found *[]string) func(context.Context, gitops.Layer) error {
	return func(ctx context.Context, layer gitops.Layer) error {
		paths, err := c.Workspace.Checkout().InLayer(layer).IgnoredFiles(ctx, c.shown(s).Snapshot)
		if err != nil && ctx.Err() == nil {
			c.warnNotKept(i, err)
			return nil
		}
		*found = paths
		return err
	}
}

// keepCaches keeps the caches filled by a check on the base.
func (c Checks) keepCaches(ctx context.Context, p confine.Place, leftovers []string, i int) {
	if err := c.Sandboxes.KeepCaches(ctx, p, leftovers, cachesScratch(i)); err != nil && ctx.Err() == nil {
		c.warnNotKept(i, err)
	}
}

func (c Checks) warnNotKept(i int, err error) {
	c.Record.Warn("caches_not_kept", "The caches that %s filled on the base could not be kept for its later runs: %v.", c.Job.Verify[i].Name, err)
}

// takesLeftovers reports whether a check sees the files that its base run left in the tree. It does
// not if the change removes a base file or changes its kind, because output of a missing source
// must not make a check green, nor if the change alters ignore rules.
func (c Checks) takesLeftovers(ctx context.Context, s suite, caches string) (bool, error) {
	if caches == "" || !c.Sandboxes.HasLeftovers(caches) {
		return false, nil
	}
	change, err := c.Workspace.Checkout().ChangeBetween(ctx, c.Workspace.Base(), s.changeTree)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(change.Files, func(f changeset.File) bool {
		return f.OldMode != "" && isRegular(f.OldMode) != isRegular(f.NewMode) || f.NewMode == "" || path.Base(f.Path) == ".gitignore"
	}), nil
}

// provenFile returns the file that proves a green check with kept caches.
func provenFile(caches string) string { return path.Join(confine.ScratchFolder, caches, "proven") }

func (c Checks) cachesProven(caches string) bool { return c.Record.Has(provenFile(caches)) }

func (c Checks) proveCaches(caches string) error {
	if c.cachesProven(caches) {
		return nil
	}
	return c.Record.Write(provenFile(caches), nil)
}
