package campaign

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/record"

	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// PlanVersion is the version of plan.json.
const PlanVersion = 1

// Plan holds every target of a campaign, resolved and frozen.
type Plan struct {
	Version  int       `json:"version"`
	Campaign string    `json:"campaign"`
	Template string    `json:"template"` // SHA-256 of the job
	Made     time.Time `json:"made"`
	Limits   Claim     `json:"limits"` // of one run
	Claim    Claim     `json:"claim"`  // what one run may use at most
	Unpriced string    `json:"unpriced,omitempty"`
	Targets  []Target  `json:"targets"`
}

// Target is a place to run the job, frozen by a plan.
type Target struct {
	// Key identifies the target in its campaign, and is part of the branch's name. It does not depend on the job.
	Key        string            `json:"key"`
	Repository string            `json:"repository"`
	Base       string            `json:"base"` // branch
	SHA        string            `json:"sha"`  // tip of Base when the plan was made
	Issue      int               `json:"issue,omitempty"`
	Path       string            `json:"path,omitempty"`
	Values     map[string]string `json:"values,omitempty"`
	JobBranch  string            `json:"branch,omitempty"`   // branch of the change, if the job names it
	Blocker    string            `json:"lacks,omitempty"`    // why it cannot run, in words
	Existing   string            `json:"existing,omitempty"` // address of an open pull request of its branch
}

// Claim is a run's maximum usage.
type Claim struct {
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens"`
}

// KeyOf returns a target's key. It begins with readable names and ends in a digest of all fields that distinguish
// targets.
func KeyOf(campaign string, t Target) string {
	values := t.Values
	if len(values) == 0 {
		values = nil // an empty map and nil give the same key
	}
	identity, err := json.Marshal([]any{strings.ToLower(t.Repository), t.Base, t.Issue, t.Path, values})
	if err != nil {
		panic(err) // impossible for strings and numbers
	}
	digest := sha256.Sum256(identity)
	return fmt.Sprintf("%s-%s-%s", campaign, slug(path.Base(t.Repository)), hex.EncodeToString(digest[:5]))
}

// Branch returns the branch of a target's change.
func (t Target) Branch() string { return cmp.Or(t.JobBranch, intake.BranchPrefix+t.Key) }

// checkNames rejects a key or template that no plan creates. A slash could place a run's folder elsewhere.
func checkNames(key, template string) error {
	if key == "" || strings.ContainsAny(key+template, "/\\\x00") {
		return fmt.Errorf("%.100q with the template %.100q is no name of a target", key, template)
	}
	return nil
}

func (c Claimed) identity() (target, template string) { return c.Target.Key, c.Template }

func (s Settled) identity() (target, template string) { return s.Target, s.Template }

// slug converts text to up to 30 lower-case characters that fit in a branch name: "My.Docs" gives my-docs.
func slug(text string) string {
	const most = 30
	return strings.Trim(clip.Start(clip.Name(strings.ToLower(text), "-_", '-'), most), "-")
}

// JobDigest returns the digest of a campaign's job.
func JobDigest(c *spec.Campaign) (string, error) {
	raw, err := json.Marshal(c.Job)
	if err != nil {
		return "", fmt.Errorf("encode the campaign's job: %w", err)
	}
	return record.DigestOf(raw), nil
}

// PlaceholderValues returns the values for the job's placeholders.
func (t Target) PlaceholderValues() map[string]string {
	owner, name, _ := strings.Cut(t.Repository, "/")
	fields := map[string]string{
		"target.repository": t.Repository, "target.owner": owner, "target.name": name, "target.base": t.Base, "target.sha": t.SHA, "target.key": t.Key,
	}
	if t.Issue > 0 {
		fields["target.number"], fields["target.issue"] = strconv.Itoa(t.Issue), fmt.Sprintf("%s#%d", t.Repository, t.Issue)
	}
	if t.Path != "" {
		fields["target.path"] = t.Path
	}
	for name, value := range t.Values {
		fields["values."+name] = value
	}
	return fields
}

// claimedKeys lists keys that decide a run's usage or how it is booked. FillJob sets all of them, so that a
// repository's defaults cannot make a run exceed its claim.
var claimedKeys = []string{
	"model.name", "model.fallbacks", "model.base_url", "model.context_window", "model.max_output_tokens", "model.service_tier",
	"model.price.input", "model.price.cached", "model.price.output",
	"limits.cost_usd", "limits.tokens", "agents.enabled", "agents.most",
}

// IsFileOnly reports whether only the campaign file may set a key, since an environment variable could make a run
// exceed its claim. Limits are not included: each start sets them by flags.
func IsFileOnly(key string) bool {
	return slices.Contains(claimedKeys, key) && !strings.HasPrefix(key, "limits.")
}

// FillJob returns the campaign's job for a target as a job file, with the target's values filled in.
func FillJob(c *spec.Campaign, t Target) ([]byte, error) {
	set := c.Job.Unset(claimedKeys)
	maps.Copy(set, map[string]any{"name": t.Key, "repository.name": t.Repository, "repository.base": t.Base, "repository.commit": t.SHA})
	if c.Targets.Folder != "" {
		set["repository.name"] = "" // repository.name would make the run clone from the forge
	}
	if t.Path != "" {
		set["repository.path"] = t.Path
	}
	return c.Job.Fill(t.PlaceholderValues(), set)
}
