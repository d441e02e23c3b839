package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
)

// Kept caches earlier results for the base.
type Kept struct {
	*record.Baselines
	RunID string
	// Machine identifies the machine and agent-ci's build.
	Machine []string
}

// keptKey returns everything that may change a check's result on one commit. It includes all job
// fields as JSON, even ones unknown to a version.
func (c Checks) keptKey(i int) (string, error) {
	raw, err := json.Marshal(c.Job)
	if err != nil {
		return "", err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return "", err
	}
	part := map[string]json.RawMessage{}
	for _, name := range []string{"repository", "setup", "services", "policy"} {
		part[name] = whole[name]
	}
	refs, err := c.Workspace.Checkout().RefsDigest()
	if err != nil {
		return "", err
	}
	base, reached := c.Workspace.Base(), c.Sandboxes.Reached()
	key, err := json.Marshal([]any{
		"baseline 2", base.SHA, base.Branch, base.Tree, refs, part, c.Job.Verify[i], c.Sandboxes.LastingEnv(), reached.Level, reached.Layers, reached.WorkTree, c.Kept.Machine,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:]), nil
}

// fromKept returns the checks with a cached green baseline, by index with the run. Red checks run
// again: trusting red would let more pass.
func (c Checks) fromKept(now time.Time) (map[int]string, error) {
	from := map[int]string{}
	for i := range c.Job.Verify {
		key, err := c.keptKey(i)
		if err != nil {
			return nil, fmt.Errorf("look for a kept baseline: %w", err)
		}
		if run := c.Kept.Green(key, now); run != "" {
			from[i] = run
		}
	}
	return from, nil
}

// baseline runs the checks on the base, except the later ones.
func (c Checks) baseline(ctx context.Context) ([]result, error) {
	base := c.Workspace.Base()
	return c.onBase(ctx, suiteOf(0, base, base.Tree), c.later)
}

// onBase runs the checks on the base that are neither given nor cached, and caches green ones. The
// cache is for the run's own base.
func (c Checks) onBase(ctx context.Context, s suite, given known) ([]result, error) {
	s.keeps = c.Sandboxes.Overlaid() && s.base.SHA == c.Workspace.Base().SHA
	if c.Kept == nil || s.base.SHA != c.Workspace.Base().SHA {
		return c.runOn(ctx, s, given)
	}
	now := time.Now()
	from, err := c.fromKept(now)
	if err != nil {
		return nil, err
	}
	results, err := c.runOn(ctx, s, func(i int) (result, bool) {
		of, ok := given(i)
		if run := from[i]; !ok && run != "" {
			return result{state: "green", from: run}, true
		}
		return of, ok
	})
	if err != nil {
		return results, err
	}
	for i, r := range results {
		if r.state != "green" || r.from != "" || len(r.runs) == 0 {
			continue
		}
		key, err := c.keptKey(i)
		if err == nil {
			err = c.Kept.Keep(key, c.Kept.RunID, now)
		}
		if err != nil {
			c.Record.Warn("baseline_not_kept", "The baseline of %s could not be kept for later runs: %v.", c.Job.Verify[i].Name, err)
			break
		}
	}
	c.Kept.Forget(now)
	return results, nil
}
