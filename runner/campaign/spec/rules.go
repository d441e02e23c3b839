package spec

import (
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

var windowForm = &form.Form{Check: form.ReadableBy(ParseWindow)}

// targetRepository names a repository, with an optional commit.
var targetRepository = form.Matching("OWNER/REPO, or OWNER/REPO@SHA with all digits of the commit", form.RepositoryPattern+`(?:@(?:[0-9a-f]{40}|[0-9a-f]{64}))?`)

// objectName and quantity are as Kubernetes has them
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/,
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/).
var (
	objectName = form.Matching("a name of Kubernetes: lower case letters, digits, dots and dashes", `[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?`)
	quantity   = form.Matching("a quantity of Kubernetes, such as 500m or 4Gi", `[0-9]{1,12}(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?`)
)

// rules has one entry for each field below Campaign, in the order of the fields.
var rules = []config.Rule{
	{Path: "", Suggest: jobKey},
	{Path: "version", About: "Version of the format.", Initial: 1, Required: true, Span: config.Between(1, 1)},
	{Path: "name", About: "Name of the campaign. It is part of the branches and of the folder in the ledger; another name is another campaign.", Required: true, Form: form.Matching("a name of at most 40 letters, digits, dots, dashes and underscores that begins with a letter or digit", `[A-Za-z0-9][A-Za-z0-9._-]{0,39}`)},

	{Path: "targets", About: "Where the job runs. A plan freezes each target at a commit of a branch."},
	{Path: "targets.list", About: "Targets, one by one.", Example: "[{repository: octo-org/widgets, values: {from: \"1\"}}]"},
	{Path: "targets.list[].repository", About: "OWNER/REPO, or OWNER/REPO@SHA for that commit of the base branch. Empty: that of the issue.", Form: targetRepository},
	{Path: "targets.list[].base", About: "Branch to start from and to merge into. Empty: the default branch.", Form: form.Branch},
	{Path: "targets.list[].issue", About: "Issue of the repository: OWNER/REPO#N or its address, or N or \"#N\".", Form: form.IssueRef, Scalars: true},
	{Path: "targets.list[].path", About: "Sub-folder of a monorepo.", Form: form.Folder},
	{Path: "targets.list[].values", About: "Values of the marks ${{ values.NAME }} in the job.", Names: form.Variable, Form: form.VariableValue, Example: "{from: \"1.24\", to: \"1.25\"}"},
	{Path: "targets.queries", About: "Searches on GitHub for targets, at each plan. Archived repositories are left out.", Example: "[{organisation: octo-org, topic: go}]"},
	{Path: "targets.queries[].organisation", About: "Account that owns the repositories.", Form: form.Login},
	{Path: "targets.queries[].topic", About: "Topic of the repositories.", Form: form.Matching("a topic: lower case letters, digits and dashes", `[a-z0-9][a-z0-9-]{0,49}`)},
	{Path: "targets.queries[].code", About: "Words of a code search. Each repository with a hit is a target.", Form: form.OneLine},
	{Path: "targets.queries[].issues", About: "Words of a search for open issues. Each issue is a target.", Form: form.OneLine},
	{Path: "targets.queries[].labels", About: "Labels of the open issues.", Form: form.Label},
	{Path: "targets.file", About: "File with one target a line: OWNER/REPO, OWNER/REPO@SHA or OWNER/REPO#N, with an optional path, or JSON as in targets.list.", Form: form.RelativeFile},
	{Path: "targets.folder", About: "Folder with repositories OWNER/REPO.git, for campaigns without GitHub. Changes are pushed there. Empty: the repositories are on GitHub.", Form: form.RelativeFile},
	{Path: "targets.most", About: "Targets that a plan may have. A plan with more is refused.", Initial: 10_000, Span: config.Between(1, 100_000)},

	{Path: "job", About: "The job, as in a job file. Its texts may contain marks such as ${{ target.repository }}. Commands take such values from variables of policy.env.set."},
	{Path: "job_file", About: "File with the job, relative to the campaign file; in place of job.", Form: form.RelativeFile},

	{Path: "pilot", About: "Number of targets that run first. The others wait for agent-ci campaign approve. 0: no pilot.", Span: config.Between(0, 10_000)},
	{Path: "budget", About: "What the campaign may use, over days and starts. 0 is no limit."},
	{Path: "budget.usd", About: "US dollars for models. It needs a known price and limits.cost_usd.", Initial: 0.0},
	{Path: "budget.usd_per_day", About: "US dollars a day (UTC), for all campaigns of the ledger together.", Initial: 0.0},
	{Path: "budget.tokens", About: "Tokens of input and output.", Initial: int64(0), Span: config.Between(0, config.Unlimited)},
	{Path: "budget.runs", About: "Runs, repeated ones included.", Initial: 0, Span: config.Between(0, config.Unlimited)},
	{Path: "budget.open_prs", About: "Open pull requests of the campaign.", Initial: 0, Span: config.Between(0, config.Unlimited)},
	{Path: "budget.open_prs_per_repository", About: "Open pull requests of the campaign in one repository.", Initial: 0, Span: config.Between(0, config.Unlimited)},
	{Path: "rollout", About: "How fast targets start."},
	{Path: "rollout.per_hour", About: "Runs that may start in an hour. 0 is no limit.", Span: config.Between(0, config.Unlimited)},
	{Path: "rollout.windows", About: "When runs may start. Empty: always.", Form: windowForm, Example: "[Mon-Fri 09:00-17:00 Europe/Berlin]"},
	{Path: "rollout.at_once", About: "Runs at a time.", Initial: 4, Span: config.Between(1, 256), Example: "8"},
	{Path: "stop_if", About: "When the campaign stops until agent-ci campaign resume."},
	{Path: "stop_if.same_reason", About: "How many failures with one reason among the last runs stop it. 3 of 10: at least 3 of the last 10.", Form: form.Matching("such as 3 of 10", `[1-9][0-9]{0,3} of [1-9][0-9]{0,3}`)},
	{Path: "on_existing", About: "What happens to a target whose branch has an open pull request: leave it alone, or update it.", Initial: "skip", Values: []string{"skip", "update"}},

	{Path: "kubernetes", About: "How runs work in a cluster."},
	{Path: "kubernetes.image", About: "Image of agent-ci, best with its digest. A cluster needs it.", Form: form.Matching("the name of an image", `[^\s]{1,512}`), Example: "registry.example.com/agent-ci@sha256:…"},
	{Path: "kubernetes.namespace", About: "Namespace of all objects. Empty: that of kubectl.", Form: form.Matching("a name of Kubernetes: at most 63 lower case letters, digits and dashes", `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`)},
	{Path: "kubernetes.secret", About: "Secret with variables of the runs: OPENAI_API_KEY, GITHUB_TOKEN.", Initial: "agent-ci-credentials", Form: objectName},
	{Path: "kubernetes.volume", About: "PersistentVolumeClaim for run directories, from which another pod resumes a lost one. Empty: each target is tried once.", Form: objectName},
	{Path: "kubernetes.cpu", About: "Processors that a run requests.", Initial: "1", Form: quantity},
	{Path: "kubernetes.memory", About: "Memory that a run requests, and its limit.", Initial: "4Gi", Form: quantity},
}

// jobKey returns where a key of a job belongs.
func jobKey(name string) string {
	if job.Format().Root.Key(name) == nil {
		return ""
	}
	return "job." + name
}
