package spec

import (
	"maps"

	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

// campaignTerms returns the forms that the tags of Campaign's fields can name: those of a job, and more. Object names and
// quantities follow Kubernetes
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/,
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/).
func campaignTerms() config.Terms {
	all := job.Terms()
	maps.Copy(all, config.Terms{
		"campaign_name": form.Matching("a name of at most 40 letters, digits, dots, dashes and underscores that begins with a letter or digit", `[A-Za-z0-9][A-Za-z0-9._-]{0,39}`),
		"image_name":    form.Matching("the name of an image", `[^\s]{1,512}`),
		"namespace":     form.Matching("a name of Kubernetes: at most 63 lower case letters, digits and dashes", `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`),
		"object_name":   form.Matching("a name of Kubernetes: lower case letters, digits, dots and dashes", `[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?`),
		"quantity":      form.Matching("a quantity of Kubernetes, such as 500m or 4Gi", `[0-9]{1,12}(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?`),
		"share":         form.Matching("such as 3 of 10", `[1-9][0-9]{0,3} of [1-9][0-9]{0,3}`),
		"target":        form.Matching("OWNER/REPO, or OWNER/REPO@SHA with all digits of the commit", form.RepositoryPattern+`(?:@(?:[0-9a-f]{40}|[0-9a-f]{64}))?`),
		"topic":         form.Matching("a topic: lower case letters, digits and dashes", `[a-z0-9][a-z0-9-]{0,49}`),
		"window":        &form.Form{Check: form.ParserCheck(parseWindow)},
	})
	return all
}

// suggestJobKey returns the full key for a name that belongs to the job, such as job.limits, or "".
func suggestJobKey(name string) string {
	if job.Format().Root.Key(name) == nil {
		return ""
	}
	return "job." + name
}
