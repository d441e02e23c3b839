package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
)

// BaselineCache caches baseline results of earlier runs.
type BaselineCache struct {
	*record.Baselines
	// machine identifies the machine and this build of agent-ci.
	machine []string
}

// baselineKey returns a digest of everything that may affect the result of check i on the base. It
// contains whole fields of the job as JSON, so new keys below them count, too.
func (c Checks) baselineKey(i int) (string, error) {
	refs, err := c.Workspace.Checkout().RefsDigest()
	if err != nil {
		return "", err
	}
	base, reached, j := c.Workspace.Base(), c.Sandboxes.Confinement(), c.Job
	key, err := json.Marshal([]any{
		"baseline 3", base.SHA, base.Branch, base.Tree, refs, j.Repository, j.Setup, j.Services, j.Policy, j.Verify[i], c.Sandboxes.StableEnv(), reached.Level, reached.Layers, reached.WorkTree, c.BaselineCache.machine,
	})
	if err != nil {
		return "", err
	}
	return record.DigestOf(key), nil
}

// runOnBase returns the results of the needed checks on the base of s. needed and the results have an entry for
// each check of the job. A check with a cached green result does not run. The other green results are cached. Red ones
// are not, because trusting them would make the verdict more lenient. Without a cache, or on another base than the
// run's own, all needed checks run.
func (c Checks) runOnBase(ctx context.Context, s suite, needed []bool) ([]result, error) {
	isOwnBase := s.base.SHA == c.Workspace.Base().SHA
	s.keepsCaches = isOwnBase && c.Sandboxes.Overlaid()
	if c.BaselineCache == nil || !isOwnBase {
		return c.runOn(ctx, s, needed)
	}
	now, uncached := time.Now(), slices.Clone(needed)
	keys, from := make([]string, len(needed)), make([]string, len(needed)) // from: the runs that cached a result
	for i := range needed {
		var err error
		if keys[i], err = c.baselineKey(i); err != nil {
			return nil, fmt.Errorf("look for a kept baseline: %w", err)
		}
		from[i] = c.BaselineCache.GreenRun(keys[i], now)
		uncached[i] = needed[i] && from[i] == ""
	}
	results, err := c.runOn(ctx, s, uncached)
	if err != nil {
		return results, err
	}
	for i, run := range from {
		if needed[i] && run != "" {
			results[i] = result{state: "green", fromRun: run}
		}
	}
	c.cacheGreen(keys, results, now)
	c.BaselineCache.RemoveExpired(now)
	return results, nil
}

// cacheGreen caches the green results of checks that ran now, by the checks' keys. A failure is a warning.
func (c Checks) cacheGreen(keys []string, results []result, now time.Time) {
	for i, r := range results {
		if r.state != "green" || len(r.runs) == 0 {
			continue
		}
		if err := c.BaselineCache.PutGreen(keys[i], c.Record.ID, now); err != nil {
			c.Record.Warn("baseline_not_kept", "The baseline of %s could not be kept for later runs: %v.", c.Job.Verify[i].Name, err)
			return
		}
	}
}
