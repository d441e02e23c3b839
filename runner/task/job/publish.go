package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Publish says as what the work of a job is published.
type Publish struct {
	As     string   `json:"as"`     // pull_request, review, labels, comment
	Labels []string `json:"labels"` // of which some are chosen
}

// The values of publish.as.
const (
	AsPullRequest = "pull_request"
	AsReview      = "review"
	AsLabels      = "labels"
	AsComment     = "comment"
)

// Feedback says whether the job publishes what is said of an issue or a pull request,
// and no change.
func (p Publish) Feedback() bool { return p.As != "" && p.As != AsPullRequest }

// fitPublish refuses what a job has no use for that publishes no change. Checks among
// the repository's defaults are for its other jobs: they are left out, and so is the
// tool that changes files.
func (d *decoder) fitPublish() {
	p := d.job.Publish
	d.fitLabels(p)
	if !p.Feedback() {
		return
	}
	as := "publish.as: " + p.As
	d.refuse(
		misfit{"task.expects", d.job.Task.Expects == "change" && d.given("task.expects"), "is change, and " + as + " publishes no change; remove it"},
		misfit{"task.output_schema", d.job.Task.OutputSchema != "", "does not go with " + as + ", which has a schema of its own; leave it out"},
		misfit{"verify", len(d.job.Verify) > 0 && d.kindOf("verify") != Defaults, "does not go with " + as + ": there is no change to check; leave it out"},
		misfit{"memory.propose", d.job.Memory.Proposes() && d.kindOf("memory.propose") != Defaults, "does not go with " + as + ": there is no change that lessons could come with; leave it out"},
	)
	d.job.Memory.Propose = "off"
	d.job.Task.Expects, d.job.Verify = "answer", []VerifyCheck{}
	if deny := d.job.Tools.Deny; !slices.Contains(deny, dialect.ApplyPatch) {
		d.job.Tools.Deny = append(slices.Clone(deny), dialect.ApplyPatch)
	}
}

func (d *decoder) fitLabels(p Publish) {
	switch {
	case p.As == AsLabels && len(p.Labels) == 0:
		d.wrong("publish.as", "is labels, and publish.labels names none")
	case p.As != AsLabels && len(p.Labels) > 0:
		d.wrong("publish.labels", "takes publish.as: labels")
	}
	seen := map[string]bool{}
	for i, name := range p.Labels {
		path := fmt.Sprintf("publish.labels[%d]", i)
		if seen[strings.ToLower(name)] {
			d.wrong(path, "is given twice; GitHub has no labels that differ in case alone")
		}
		seen[strings.ToLower(name)] = true
	}
}

// given says whether some layer sets a key.
func (d *decoder) given(path string) bool {
	_, set := d.places[path]
	return set
}

// kindOf is the kind of the layer that set a key.
func (d *decoder) kindOf(path string) Kind { return d.kinds[d.places[path].layer] }
