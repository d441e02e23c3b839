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

// baselineKeys returns for each check a digest of everything that may affect its result on the base. It
// contains whole fields of the job as JSON, so new keys below them count, too.
func (c Checks) baselineKeys() ([]string, error) {
	refs, err := c.Workspace.Checkout().RefsDigest()
	if err != nil {
		return nil, err
	}
	base, reached, j := c.Workspace.Base(), c.Sandboxes.Confinement(), c.Job
	keys := make([]string, len(j.Verify))
	for i, check := range j.Verify {
		key, err := json.Marshal([]any{
			"baseline 3", base.SHA, base.Branch, base.Tree, refs, j.Repository, j.Setup, j.Services, j.Policy, check, c.Sandboxes.StableEnv(), reached.Level, reached.Layers, reached.WorkTree, c.BaselineCache.machine,
		})
		if err != nil {
			return nil, err
		}
		keys[i] = record.DigestOf(key)
	}
	return keys, nil
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
	keys, err := c.baselineKeys()
	if err != nil {
		return nil, fmt.Errorf("look for a kept baseline: %w", err)
	}
	now, uncached := time.Now(), slices.Clone(needed)
	from := make([]string, len(needed)) // the runs that cached a needed result
	for i, key := range keys {
		if needed[i] {
			from[i] = c.BaselineCache.GreenRun(key, now)
			uncached[i] = from[i] == ""
		}
	}
	results, err := c.runOn(ctx, s, uncached)
	if err != nil {
		return results, err
	}
	for i, run := range from {
		if run != "" {
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
