package job

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Publish selects the form of the published result.
type Publish struct {
	As     string   `json:"as" values:"pull_request|review|labels|comment" default:"pull_request" about:"pull_request publishes a change. review, labels and comment change no file and speak on the issue or pull request."`
	Labels []string `json:"labels" form:"label" example:"[bug, question]" about:"The labels that publish.as: labels may add. GitHub creates missing ones."`
}

// The values of publish.as.
const (
	asPullRequest = "pull_request"
	AsReview      = "review"
	AsLabels      = "labels"
	AsComment     = "comment"
)

// IsFeedback reports whether the job publishes feedback instead of a change.
func (p Publish) IsFeedback() bool { return p.As != "" && p.As != asPullRequest }

// checkPublish rejects keys without effect in a feedback job. Checks from the repository's defaults
// are for other jobs: it drops them without an error. It also denies the apply_patch tool.
func (d *validator) checkPublish() {
	j, p := d.job, d.job.Publish
	d.reportFirst("publish",
		mistake{p.As == AsLabels && len(p.Labels) == 0, "as", "is labels, and publish.labels names none"},
		mistake{p.As != AsLabels && len(p.Labels) > 0, "labels", "needs publish.as: labels"})
	for i, label := range p.Labels {
		twice := slices.ContainsFunc(p.Labels[:i], func(other string) bool { return strings.EqualFold(other, label) })
		d.reportFirst(config.JoinPath("publish.labels", i), mistake{twice, "", "is given twice; GitHub has no labels that differ in case alone"})
	}
	if !p.IsFeedback() {
		return
	}
	as := "publish.as: " + p.As
	isOfJob := func(key string) bool { return d.SourceKind(key) != config.DefaultsLayer }
	d.reportEach("",
		mistake{j.Task.Expects == "change" && d.IsSet("task.expects"), "task.expects", "is change, and " + as + " publishes no change; remove it"},
		mistake{j.Task.OutputSchema != "", "task.output_schema", "does not go with " + as + ", which has a schema of its own; leave it out"},
		mistake{len(j.Verify) > 0 && isOfJob("verify"), "verify", "does not go with " + as + ": there is no change to check; leave it out"},
		mistake{j.Memory.Proposes() && isOfJob("memory.propose"), "memory.propose", "does not go with " + as + ": lessons are published only as part of a change; leave it out"})
	j.Memory.Propose, j.Task.Expects, j.Verify = "off", "answer", []VerifyCheck{}
	if !slices.Contains(j.Tools.Deny, dialect.ApplyPatch) {
		j.Tools.Deny = append(slices.Clone(j.Tools.Deny), dialect.ApplyPatch)
	}
}
