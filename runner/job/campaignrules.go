package job

import "time"

var windowForm = &form{about: "days, times and time zone", check: readableBy(ParseWindow)}

// targetRepository is a repository, at a commit where one is given.
var targetRepository = matching("OWNER/REPO, or OWNER/REPO@SHA with all digits of the commit", repositoryPattern+`(?:@(?:[0-9a-f]{40}|[0-9a-f]{64}))?`)

// objectName and quantity are as Kubernetes has them
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/,
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/).
var (
	objectName = matching("a name of Kubernetes: lower case letters, digits, dots and dashes", `[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?`)
	quantity   = matching("a quantity of Kubernetes, such as 500m or 4Gi", `[0-9]{1,12}(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?`)
)

// campaignRules has one entry for each field below Campaign, in the order of the fields.
var campaignRules = []rule{
	{path: "version", about: "Version of the format.", initial: 1, required: true, span: &span{1, 1}},
	{path: "name", about: "Names the campaign, its branches and what it keeps. Another name is another campaign.", required: true, form: matching("a name of at most 40 letters, digits, dots, dashes and underscores that begins with a letter or digit", `[A-Za-z0-9][A-Za-z0-9._-]{0,39}`)},

	{path: "targets", about: "Where the job runs. Each target is resolved to a repository, a branch and a commit, and frozen in the plan; one that is named twice is one."},
	{path: "targets.list", about: "Targets by name.", example: "[{repository: octo-org/widgets, values: {from: \"1\"}}]"},
	{path: "targets.list[].repository", about: "OWNER/REPO, or OWNER/REPO@SHA for that commit of the base branch. Empty: that of the issue.", form: targetRepository},
	{path: "targets.list[].base", about: "Branch to start from and to merge into. Empty: the default branch.", form: branchForm},
	{path: "targets.list[].issue", about: "Issue of the repository: OWNER/REPO#N or its address, or N or \"#N\".", form: issueForm, scalars: true},
	{path: "targets.list[].path", about: "Sub-folder of a monorepo.", form: folder},
	{path: "targets.list[].values", about: "What else the job's ${{ values.NAME }} stand for.", names: variable, form: variableValue, example: "{from: \"1.24\", to: \"1.25\"}"},
	{path: "targets.queries", about: "Targets that the forge is asked for when a plan is made. Archived repositories are left out.", example: "[{organisation: octo-org, topic: go}]"},
	{path: "targets.queries[].organisation", about: "Account that owns the repositories.", form: login},
	{path: "targets.queries[].topic", about: "Topic that they have.", form: matching("a topic: lower case letters, digits and dashes", `[a-z0-9][a-z0-9-]{0,49}`)},
	{path: "targets.queries[].code", about: "Words of a code search; the repositories in which something is found.", form: oneLine},
	{path: "targets.queries[].issues", about: "Words of a search for open issues, each of which is a target.", form: oneLine},
	{path: "targets.queries[].labels", about: "Labels that the open issues have.", form: label},
	{path: "targets.file", about: "File with targets, relative to the campaign file: a line for each (OWNER/REPO, OWNER/REPO@SHA, OWNER/REPO#N, and behind a blank a path), or a line of JSON with the keys of targets.list.", form: relativeFile},
	{path: "targets.folder", about: "Folder with the repositories OWNER/REPO, relative to the campaign file. GitHub is not asked then, no token is needed, and each change is pushed to its repository in the folder. Empty: the repositories are on GitHub.", form: relativeFile},
	{path: "targets.most", about: "Targets that a plan may have. More of them are refused, not cut.", initial: 10_000, span: &span{1, 100_000}},

	{path: "applies_if", about: "Command, for a shell, in a clean tree of the target, before anything is paid: 0 applies, 1 does not, any other status is an error.", form: notBlank},
	{path: "recipe", about: "A step without a model, before the agent."},
	{path: "recipe.run", about: "Command, for a shell, whose change is that of the run.", form: notBlank},
	{path: "recipe.agent", about: "Whether the agent works after it: when checks are red then, or always.", initial: "when_red", values: []string{"when_red", "always"}},
	{path: "recipe.timeout", about: "How long it may take.", initial: Duration(10 * time.Minute)},

	{path: "job", about: "The job, as in a job file. In its texts stand ${{ target.repository }}, ${{ target.path }} and so on for what is of a target; in commands do variables that policy.env.set gives such a value."},
	{path: "job_file", about: "File with that job, relative to the campaign file.", form: relativeFile},

	{path: "pilot", about: "Targets that run first; the others wait until a person has approved. 0: none waits.", span: &span{0, 10_000}},
	{path: "budget", about: "What the campaign may use, over days and starts. Before a run starts, the most that it may use is claimed: its limit plus one request of the greatest length. 0 is no bound."},
	{path: "budget.usd", about: "US dollars for models. It takes a price and limits.cost_usd; a target without is refused.", initial: 0.0},
	{path: "budget.usd_per_day", about: "US dollars a day (UTC), of all campaigns of the ledger together.", initial: 0.0},
	{path: "budget.tokens", about: "Tokens, read and written.", initial: int64(0), span: &span{0, many}},
	{path: "budget.runs", about: "Runs, also those of targets that run again.", initial: 0, span: &span{0, many}},
	{path: "budget.open_prs", about: "Pull requests of the campaign that may be open at a time.", initial: 0, span: &span{0, many}},
	{path: "budget.open_prs_per_repository", about: "The same, in one repository.", initial: 0, span: &span{0, many}},
	{path: "rollout", about: "How fast targets are started."},
	{path: "rollout.per_hour", about: "Runs that may start in an hour. 0 is no bound.", span: &span{0, many}},
	{path: "rollout.windows", about: "When runs may start. Empty: always.", form: windowForm, example: "[Mon-Fri 09:00-17:00 Europe/Berlin]"},
	{path: "rollout.at_once", about: "Runs at a time.", initial: 4, span: &span{1, 256}},
	{path: "stop_if", about: "When nothing more is started until a person resumes the campaign."},
	{path: "stop_if.same_reason", about: "So many of so many runs, the last ones, failed with the same reason: 3 of 10.", form: matching("such as 3 of 10", `[1-9][0-9]{0,3} of [1-9][0-9]{0,3}`)},
	{path: "on_existing", about: "What becomes of a target whose branch has an open pull request already: it is left alone, or brought up to date.", initial: "skip", values: []string{"skip", "update"}},

	{path: "kubernetes", about: "What runs find in a cluster, where waves are handed to one."},
	{path: "kubernetes.image", about: "Image of agent-ci, best by its digest. Without it no wave can be handed to a cluster.", form: matching("the name of an image", `[^\s]{1,512}`), example: "registry.example.com/agent-ci@sha256:…"},
	{path: "kubernetes.namespace", about: "Namespace of all that is made there. Empty: that of kubectl.", form: matching("a name of Kubernetes: at most 63 lower case letters, digits and dashes", `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`)},
	{path: "kubernetes.secret", about: "Secret whose keys are variables of the runs: OPENAI_API_KEY, GITHUB_TOKEN.", initial: "agent-ci-credentials", form: objectName},
	{path: "kubernetes.volume", about: "PersistentVolumeClaim that keeps run directories. A pod that is lost is gone on with there. Empty: none is kept, and each target is tried once.", form: objectName},
	{path: "kubernetes.cpu", about: "Processors that a run asks for.", initial: "1", form: quantity},
	{path: "kubernetes.memory", about: "Memory that a run asks for, and may have.", initial: "4Gi", form: quantity},
}
