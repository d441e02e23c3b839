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
	{path: "name", about: "Name of the campaign. It is part of the branches and of the folder in the ledger; another name is another campaign.", required: true, form: matching("a name of at most 40 letters, digits, dots, dashes and underscores that begins with a letter or digit", `[A-Za-z0-9][A-Za-z0-9._-]{0,39}`)},

	{path: "targets", about: "Where the job runs. A plan freezes each target at a commit of a branch."},
	{path: "targets.list", about: "Targets, one by one.", example: "[{repository: octo-org/widgets, values: {from: \"1\"}}]"},
	{path: "targets.list[].repository", about: "OWNER/REPO, or OWNER/REPO@SHA for that commit of the base branch. Empty: that of the issue.", form: targetRepository},
	{path: "targets.list[].base", about: "Branch to start from and to merge into. Empty: the default branch.", form: branchForm},
	{path: "targets.list[].issue", about: "Issue of the repository: OWNER/REPO#N or its address, or N or \"#N\".", form: issueForm, scalars: true},
	{path: "targets.list[].path", about: "Sub-folder of a monorepo.", form: folder},
	{path: "targets.list[].values", about: "Values of the marks ${{ values.NAME }} in the job.", names: variable, form: variableValue, example: "{from: \"1.24\", to: \"1.25\"}"},
	{path: "targets.queries", about: "Searches on GitHub for targets, at each plan. Archived repositories are left out.", example: "[{organisation: octo-org, topic: go}]"},
	{path: "targets.queries[].organisation", about: "Account that owns the repositories.", form: login},
	{path: "targets.queries[].topic", about: "Topic of the repositories.", form: matching("a topic: lower case letters, digits and dashes", `[a-z0-9][a-z0-9-]{0,49}`)},
	{path: "targets.queries[].code", about: "Words of a code search. Each repository with a hit is a target.", form: oneLine},
	{path: "targets.queries[].issues", about: "Words of a search for open issues. Each issue is a target.", form: oneLine},
	{path: "targets.queries[].labels", about: "Labels of the open issues.", form: label},
	{path: "targets.file", about: "File with one target a line: OWNER/REPO, OWNER/REPO@SHA or OWNER/REPO#N, with an optional path, or JSON as in targets.list.", form: relativeFile},
	{path: "targets.folder", about: "Folder with repositories OWNER/REPO.git, for campaigns without GitHub. Changes are pushed there. Empty: the repositories are on GitHub.", form: relativeFile},
	{path: "targets.most", about: "Targets that a plan may have. A plan with more is refused.", initial: 10_000, span: &span{1, 100_000}},

	{path: "applies_if", about: "Shell command that runs in a clean tree before anything is paid. Status 0: the job applies; 1: it does not; any other: an error.", form: notBlank},
	{path: "recipe", about: "A step without a model, before the agent."},
	{path: "recipe.run", about: "Shell command that changes the checkout.", form: notBlank},
	{path: "recipe.agent", about: "When the agent works after it: when checks are red, or always.", initial: "when_red", values: []string{"when_red", "always"}},
	{path: "recipe.timeout", about: "How long it may take.", initial: Duration(10 * time.Minute)},

	{path: "job", about: "The job, as in a job file. Its texts may contain marks such as ${{ target.repository }}. Commands take such values from variables of policy.env.set."},
	{path: "job_file", about: "File with the job, relative to the campaign file; in place of job.", form: relativeFile},

	{path: "pilot", about: "Number of targets that run first. The others wait for agent-ci campaign approve. 0: no pilot.", span: &span{0, 10_000}},
	{path: "budget", about: "What the campaign may use, over days and starts. 0 is no limit."},
	{path: "budget.usd", about: "US dollars for models. It needs a known price and limits.cost_usd.", initial: 0.0},
	{path: "budget.usd_per_day", about: "US dollars a day (UTC), for all campaigns of the ledger together.", initial: 0.0},
	{path: "budget.tokens", about: "Tokens of input and output.", initial: int64(0), span: &span{0, many}},
	{path: "budget.runs", about: "Runs, repeated ones included.", initial: 0, span: &span{0, many}},
	{path: "budget.open_prs", about: "Open pull requests of the campaign.", initial: 0, span: &span{0, many}},
	{path: "budget.open_prs_per_repository", about: "Open pull requests of the campaign in one repository.", initial: 0, span: &span{0, many}},
	{path: "rollout", about: "How fast targets start."},
	{path: "rollout.per_hour", about: "Runs that may start in an hour. 0 is no limit.", span: &span{0, many}},
	{path: "rollout.windows", about: "When runs may start. Empty: always.", form: windowForm, example: "[Mon-Fri 09:00-17:00 Europe/Berlin]"},
	{path: "rollout.at_once", about: "Runs at a time.", initial: 4, span: &span{1, 256}},
	{path: "stop_if", about: "When the campaign stops until agent-ci campaign resume."},
	{path: "stop_if.same_reason", about: "Failures with the same reason among the last runs, such as 3 of 10.", form: matching("such as 3 of 10", `[1-9][0-9]{0,3} of [1-9][0-9]{0,3}`)},
	{path: "on_existing", about: "What happens to a target whose branch has an open pull request: leave it alone, or update it.", initial: "skip", values: []string{"skip", "update"}},

	{path: "kubernetes", about: "How runs work in a cluster."},
	{path: "kubernetes.image", about: "Image of agent-ci, best with its digest. A cluster needs it.", form: matching("the name of an image", `[^\s]{1,512}`), example: "registry.example.com/agent-ci@sha256:…"},
	{path: "kubernetes.namespace", about: "Namespace of all objects. Empty: that of kubectl.", form: matching("a name of Kubernetes: at most 63 lower case letters, digits and dashes", `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`)},
	{path: "kubernetes.secret", about: "Secret with variables of the runs: OPENAI_API_KEY, GITHUB_TOKEN.", initial: "agent-ci-credentials", form: objectName},
	{path: "kubernetes.volume", about: "PersistentVolumeClaim for run directories, from which another pod resumes a lost one. Empty: each target is tried once.", form: objectName},
	{path: "kubernetes.cpu", about: "Processors that a run requests.", initial: "1", form: quantity},
	{path: "kubernetes.memory", about: "Memory that a run requests, and its limit.", initial: "4Gi", form: quantity},
}
