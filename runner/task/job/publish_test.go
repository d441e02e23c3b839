package job

import (
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

func TestValidatesPublishSettings(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		want       []string
	}{
		{"a review", start + "publish: {as: review}", nil},
		{"labels", start + "publish: {as: labels, labels: [bug, question]}", nil},
		{"labels of none", start + "publish: {as: labels}", []string{"job.yml:3:15: publish.as: is labels, and publish.labels names none"}},
		{"labels beside a comment", start + "publish: {as: comment, labels: [bug]}", []string{"job.yml:3:32: publish.labels: needs publish.as: labels"}},
		{"a label twice", start + "publish: {as: labels, labels: [bug, Bug]}", []string{
			"job.yml:3:37: publish.labels[1]: is given twice; GitHub has no labels that differ in case alone",
		}},
		{"a change beside a review", "version: 1\ntask: {prompt: x, expects: change}\npublish: {as: review}", []string{
			"job.yml:2:28: task.expects: is change, and publish.as: review publishes no change; remove it",
		}},
		{"an answer beside a review", "version: 1\ntask: {prompt: x, expects: answer}\npublish: {as: review}", nil},
		{"two schemas", "version: 1\ntask: {prompt: x, output_schema: a.json}\npublish: {as: comment}", []string{
			"job.yml:2:34: task.output_schema: does not go with publish.as: comment, which has a schema of its own; leave it out",
		}},
		{"checks of nothing", start + "publish: {as: comment}\nverify: [{run: make}]", []string{
			"job.yml:4:9: verify: does not go with publish.as: comment: there is no change to check; leave it out",
		}},
	} {
		must.Same(t, c.want, problemLines(t, jobFile(c.yaml)), c.name)
	}
}

// Checks of the repository's other jobs are left out, and an answer is expected.
func TestFeedbackHasNoChecks(t *testing.T) {
	defaults := config.Layer{Name: "defaults", Kind: config.DefaultsLayer, Data: []byte("version: 1\nverify: [{run: make}, {run: make}]\n")}
	j := must.Get(Load(defaults, jobFile(start+"publish: {as: review}")))(t)
	if len(j.Verify) > 0 || j.Task.Expects != "answer" || !j.Publish.IsFeedback() {
		t.Errorf("the job has %v and expects %s", j.Verify, j.Task.Expects)
	}
	must.Same(t, []string{"apply_patch"}, j.Tools.Deny, "the tools that are denied")
	if lines := problemLines(t, defaults, jobFile(start)); !slices.ContainsFunc(lines, func(s string) bool { return s != "" }) {
		t.Error("two checks with one name are taken for a change")
	}
}
