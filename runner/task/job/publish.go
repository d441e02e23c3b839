package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Publish selects the form of the published result.
type Publish struct {
	As     string   `json:"as"`     // pull_request, review, labels, comment
	Labels []string `json:"labels"` // to choose from
}

// The values of publish.as.
const (
	AsPullRequest = "pull_request"
	AsReview      = "review"
	AsLabels      = "labels"
	AsComment     = "comment"
)

// Feedback reports whether the job publishes feedback on an issue or a pull request instead of a
// change.
func (p Publish) Feedback() bool { return p.As != "" && p.As != AsPullRequest }

// fitPublish rejects keys without effect in a feedback job. Checks from the repository's defaults
// are for other jobs: it drops them without an error. It also denies the apply_patch tool.
func (d *checks) fitPublish() {
	p := d.job.Publish
	d.fitLabels(p)
	if !p.Feedback() {
		return
	}
	as := "publish.as: " + p.As
	d.WrongIf(d.job.Task.Expects == "change" && d.Given("task.expects"), "task.expects", "is change, and "+as+" publishes no change; remove it")
	d.WrongIf(d.job.Task.OutputSchema != "", "task.output_schema", "does not go with "+as+", which has a schema of its own; leave it out")
	d.WrongIf(len(d.job.Verify) > 0 && d.KindOf("verify") != config.Defaults, "verify", "does not go with "+as+": there is no change to check; leave it out")
	d.WrongIf(d.job.Memory.Proposes() && d.KindOf("memory.propose") != config.Defaults, "memory.propose", "does not go with "+as+": there is no change that lessons could come with; leave it out")
	d.job.Memory.Propose = "off"
	d.job.Task.Expects, d.job.Verify = "answer", []VerifyCheck{}
	if deny := d.job.Tools.Deny; !slices.Contains(deny, dialect.ApplyPatch) {
		d.job.Tools.Deny = append(slices.Clone(deny), dialect.ApplyPatch)
	}
}

func (d *checks) fitLabels(p Publish) {
	switch {
	case p.As == AsLabels && len(p.Labels) == 0:
		d.Wrong("publish.as", "is labels, and publish.labels names none")
	case p.As != AsLabels && len(p.Labels) > 0:
		d.Wrong("publish.labels", "takes publish.as: labels")
	}
	seen := map[string]bool{}
	for i, name := range p.Labels {
		path := fmt.Sprintf("publish.labels[%d]", i)
		if seen[strings.ToLower(name)] {
			d.Wrong(path, "is given twice; GitHub has no labels that differ in case alone")
		}
		seen[strings.ToLower(name)] = true
	}
}
