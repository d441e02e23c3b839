package job

import (
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// rule says of one key what its Go type cannot.
type rule struct {
	path    string // "limits.turns"; "verify[].run" is a key of each element of verify
	about   string // what the key means, with its unit
	initial any    // default; nil for the zero value, an empty list or an empty mapping
	example string // YAML, for lists and mappings whose form isn't obvious

	values  []string // all that may be written; nil for anything of the form
	form    *form    // of the text, of each element of a list, of each value of a mapping
	names   *form    // of the names in a mapping
	span    *span    // of a number
	foreign *foreign // of a mapping whose keys are not ours, or of each element of a list of such

	required bool // must be written wherever its group is
	filled   bool // may not be empty text
	most     int  // entries of a mapping of mappings, or of a list
	scalars  bool // numbers and truth values count as text, as they are written
}

// span is what a number may be, both ends included.
type span struct{ least, most int64 }

const many = 1_000_000_000_000

// rules has one entry for each field below Job, in the order of the fields.
var rules = []rule{
	{path: "version", about: "Version of the format. Every file needs it.", initial: 1, required: true, span: &span{1, 1}},
	{path: "name", about: "Task key. It names the branch and tells the runs of one task apart from others. Empty: `issue-N`, or `prompt-` and a digest.", form: refPart},

	{path: "task", about: "What to do. Give exactly one of prompt, prompt_file, issue and from."},
	{path: "task.title", about: "Title of the task.", form: oneLine},
	{path: "task.prompt", about: "The task as text.", form: notBlank},
	{path: "task.prompt_file", about: "File with the task as text, relative to the job file.", form: relativeFile},
	{path: "task.issue", about: "Issue to work on: its number, OWNER/REPO#N or its address. Quote \"#7\": without quotes it is a YAML comment.", form: issueForm, scalars: true},
	{path: "task.from", about: "event: take the task from the event that started the workflow. A job without a task does so in GitHub Actions.", values: []string{"", "event"}},
	{path: "task.images", about: "Images for the model: PNG, JPEG or GIF files relative to the job file, or https addresses of images on GitHub.", form: imageForm, example: "[docs/mockup.png]"},
	{path: "task.attachments", about: "images: send images attached to the issue and to trusted comments. none: for models without images.", initial: "images", values: []string{"images", "none"}},
	{path: "task.expects", about: "Whether the run ends with a change or with an answer in words.", initial: "change", values: []string{"change", "answer"}},
	{path: "task.questions", about: "assume: the model assumes the likely answer and says so. ask: it asks on the issue; the run ends as needs_input.", initial: "assume", values: []string{"assume", "ask"}},
	{path: "task.output_schema", about: "File with a JSON Schema, relative to the job file. The run then writes output.json with an object that fits it.", form: relativeFile},

	{path: "repository", about: "Where to work."},
	{path: "repository.name", about: "Repository on GitHub. Empty: from the checkout or from GitHub Actions.", form: repositoryForm},
	{path: "repository.base", about: "Branch to start from and to merge into. Empty: the branch that is checked out.", form: branchForm},
	{path: "repository.commit", about: "Commit of the base branch to start from, with all its digits. Empty: the newest. The change is still merged onto the newest.", form: matching("a commit's SHA with all digits", `(?:[0-9a-f]{40}|[0-9a-f]{64})`)},
	{path: "repository.path", about: "Subfolder of a monorepo to work in.", initial: ".", form: folder, filled: true},

	{path: "applies_if", about: "Shell command that decides whether the job applies: exit status 0 for yes, 1 for no (the run ends as skipped). Limit: 5 minutes.", form: notBlank},

	{path: "setup", about: "Commands that run in order before the baseline and the agent, without tokens.", example: "[{name: modules, run: make deps, timeout: 5m}]"},
	{path: "setup[].name", about: "Name of the command in reports. Empty: the command itself.", form: oneLine},
	{path: "setup[].run", about: "Shell command.", required: true, filled: true, form: notBlank},
	{path: "setup[].network", about: "Network of this command, as in policy.network. Empty: that of policy.network.", values: []string{"", "none", "loopback", "full"}},
	{path: "setup[].timeout", about: "Time limit of the command.", initial: Duration(5 * time.Minute)},

	{path: "recipe", about: "A command that makes the change, or a part of it, without a model. It may run again when a run is resumed."},
	{path: "recipe.run", about: "Shell command that changes the checkout, such as a formatter or codemod.", form: notBlank},
	{path: "recipe.agent", about: "when_red: the agent works only if a check fails after the recipe. Without checks it always works.", initial: "when_red", values: []string{"when_red", "always"}},
	{path: "recipe.timeout", about: "Time limit of the command.", initial: Duration(10 * time.Minute)},

	{path: "services", about: "Databases and other servers that commands reach at 127.0.0.1, by name.", example: "{db: {run: redis-server --port 6379, port: 6379}}", names: serviceName, most: MostServices},
	{path: "services.*.run", about: "Shell command that starts the server and stays in the foreground. It restarts with empty data for every setup command, agent attempt and check.", form: notBlank},
	{path: "services.*.init", about: "Commands that run in order once the service is ready, such as one that creates a database.", form: notBlank, filled: true, example: "[createdb -h 127.0.0.1 app]"},
	{path: "services.*.ready", about: "When the service counts as ready."},
	{path: "services.*.ready.run", about: "Command that agent-ci repeats until it exits with 0. Empty: the service is ready when its port accepts connections.", form: notBlank},
	{path: "services.*.ready.timeout", about: "Time limit for the service to become ready, and for each init command.", initial: Duration(time.Minute)},
	{path: "services.*.env", about: "More variables for the service and its commands.", example: "{PGUSER: postgres}", names: variable, form: variableValue},
	{path: "services.*.port", about: "Port at which the service listens and commands find it. With at: the port of that address if you leave it out.", span: &span{0, 65535}},
	{path: "services.*.user", about: "User name or number that the service sees as its own, for programs that refuse root, such as PostgreSQL.", form: serviceUser, scalars: true},
	{path: "services.*.at", about: "HOST:PORT of a server that runs already, at a loopback or private address. Its name is resolved once, before the run.", form: serviceAt},

	{path: "model", about: "Which model answers, and how agent-ci reaches it."},
	{path: "model.name", about: "Name of the model, as the API knows it.", initial: "gpt-5.4", filled: true, form: oneLine},
	{path: "model.fallbacks", about: "Models at the same API that continue, in this order, if the one before is unavailable or out of quota. All take the same tools.", form: filledLine, example: "[gpt-5.2, gpt-5]"},
	{path: "model.api_key_env", about: "Name of the variable with the API key, never the key itself. Empty: no key is sent.", initial: "OPENAI_API_KEY", form: variable},
	{path: "model.auth", about: "key: the API key in api_key_env. oidc: an hourly key for the CI job's identity (OpenAI only).", initial: "key", values: []string{"key", "oidc"}},
	{path: "model.identity", about: "The identity for auth: oidc. None of it is secret."},
	{path: "model.identity.provider_id", about: "Id of the identity provider at OpenAI. Empty: OPENAI_IDENTITY_PROVIDER_ID.", form: oneLine},
	{path: "model.identity.service_account_id", about: "Service account that the keys belong to. Empty: OPENAI_SERVICE_ACCOUNT_ID.", form: oneLine},
	{path: "model.identity.token_file", about: "Absolute path of the token file. Commands cannot read it. Empty: OPENAI_IDENTITY_TOKEN_FILE, or a token from GitHub Actions.", form: absoluteFile},
	{path: "model.base_url", about: "Address of the API. Empty: OPENAI_BASE_URL, or OpenAI. http works for this machine and its network only.", form: webAddress},
	{path: "model.headers", about: "More headers for every request. They appear in the transcript, so put no key here.", example: "{X-Team: build}", names: headerName, form: headerValue},
	{path: "model.wire", about: "responses: the Responses API. chat: Chat Completions, for endpoints that have nothing else.", initial: "responses", values: []string{"responses", "chat"}},
	{path: "model.chat", about: "Quirks of a chat endpoint, from agent-ci doctor --online.", example: "[no_system, alternate]", values: chatQuirks},
	{path: "model.stream", about: "false: ask for answers in one piece, for endpoints that cannot stream. An answer may take 15 minutes.", initial: true},
	{path: "model.reasoning_effort", about: "How much the model thinks. Empty: send nothing, for models that do not reason.", initial: "medium", values: []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}},
	{path: "model.reasoning_summary", about: "Summary of the model's thoughts, for the transcript. Empty: none.", values: []string{"", "auto", "concise", "detailed"}},
	{path: "model.service_tier", about: "Processing tier. Empty: your project's. A full or unknown one falls back to the default.", values: []string{"", "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}},
	{path: "model.max_output_tokens", about: "Most tokens in one answer, including reasoning. 0: the model's own limit.", span: &span{0, many}},
	{path: "model.context_window", about: "Tokens that fit into one request and its answer. 0: from the model's profile, or 128000. agent-ci shortens conversations at 85 %.", span: &span{0, many}},
	{path: "model.tools", about: "Form of the model's tools. auto: freeform, function or code, by model.", initial: "auto", values: slices.Concat([]string{"auto", "freeform", "function", "builtin", "code"}, dialect.Families(), []string{ToolsAiderDiff, ToolsAiderUdiff, ToolsAiderWhole})},
	{path: "model.outage", about: "Most time that the run spends on retries and pauses in all.", initial: Duration(10 * time.Minute)},
	{path: "model.price", about: "What the model costs. Empty: the price in its profile, if known."},
	{path: "model.price.input", about: "US dollars for a million input tokens."},
	{path: "model.price.cached", about: "US dollars for a million input tokens from the provider's cache. 0: as input."},
	{path: "model.price.output", about: "US dollars for a million output tokens."},

	{path: "tools", about: "Which tools the model may call."},
	{path: "tools.allow", about: "The only tools that the model gets. Empty: all that suit it.", form: toolName},
	{path: "tools.deny", about: "Tools that the model does not get and cannot call, even if allow lists them.", form: toolName},
	{path: "tools.hosted", about: "Tools that the API runs itself: web_search, file_search, code_interpreter, mcp, image_generation. A type, or a mapping as the API describes it.", example: "[web_search, {type: file_search, vector_store_ids: [vs_1]}]", foreign: hosted},
	{path: "tools.dynamic", about: "Tools of your own: programs that run in the agent's sandbox.", example: "[{name: lookup, description: Looks a word up., input_schema: {type: object}, run: [./lookup.sh]}]", most: mostDynamicTools},
	{path: "tools.dynamic[].name", about: "Name of the tool.", required: true, filled: true, form: dynamicName},
	{path: "tools.dynamic[].description", about: "What the tool does, for the model.", required: true, filled: true, form: notBlank},
	{path: "tools.dynamic[].input_schema", about: "JSON Schema of the arguments, an object.", required: true, foreign: inputSchema},
	{path: "tools.dynamic[].run", about: "Script, or program and arguments as a list. It reads the arguments as JSON on standard input and prints the result."},
	{path: "tools.dynamic[].timeout", about: "Time limit of a call.", initial: Duration(5 * time.Minute)},
	{path: "tools.dynamic[].defer", about: "true: the model finds the tool by searching only."},
	{path: "tools.js_repl", about: "true: the model may run JavaScript in a Node process that keeps its variables. Needs Node 18 or newer."},

	{path: "skills", about: "Skills of the repository: folders with a SKILL.md that the model may load."},
	{path: "skills.folders", about: "Folders of the base commit with skills. The first skill of a name counts. An empty list switches skills off.", initial: []string{".agents/skills", ".claude/skills"}, form: skillFolder},

	{path: "git", about: "What git may do in the checkout."},
	{path: "git.filters", about: "Filters in .git/config that may run, in a sandbox. Any other filter there ends the run. Git LFS needs no entry.", example: "[{name: nbstripout}]"},
	{path: "git.filters[].name", about: "NAME of filter.NAME in git's configuration.", required: true, filled: true, form: oneLine},
	{path: "git.filters[].reads", about: "Paths that the filter may read besides its standard input, such as a key. Written as in policy.writable.", form: oneLine, example: "[.git/git-crypt]"},

	{path: "policy", about: "What commands and changes may do."},
	{path: "policy.sandbox", about: "What commands may write: only temporary files, also the workspace, or anything. danger-full-access confines nothing, and each run warns.", initial: "workspace-write", values: []string{"read-only", "workspace-write", "danger-full-access"}},
	{path: "policy.require", about: "The least confinement that you accept: landlock, namespaces, or full for both. Empty: any.", values: []string{"", "landlock", "namespaces", "full"}},
	{path: "policy.network", about: "What commands reach: nothing, their own loopback, everything, or that loopback and a list of hosts.", initial: Network{Mode: modeLoopback}, values: []string{"none", "loopback", "full"}},
	{path: "policy.writable", about: "More folders that commands may write: relative to the repository, below ~/, or absolute.", form: oneLine, example: "[~/.gradle]"},
	{path: "policy.deny_read", about: "Paths that commands and tools may not read, besides credentials. Written as in writable. git must not track them.", form: oneLine, example: "[secrets, /opt/licences]"},
	{path: "policy.protect", about: "More patterns of paths that the change may not touch, besides those protected by default. !PATTERN opens one of the defaults.", form: protectPattern, example: "[deploy/**, '!AGENTS.md']"},
	{path: "policy.change", about: "How doubtful parts of a change are treated. fail: nothing is published. warn: published with a warning. allow: published."},
	{path: "policy.change.protected", about: "Files that policy.protect matches. drop: leave them out with a warning and publish the rest.", initial: "fail", values: append(slices.Clone(treatments), "drop")},
	{path: "policy.change.submodules", about: "New, deleted or moved submodules. A commit that exists only in this run is never part of the change.", initial: "fail", values: treatments},
	{path: "policy.change.nested_git", about: "Repositories inside the repository. Their content is never part of the change.", initial: "fail", values: treatments},
	{path: "policy.change.symlinks_out", about: "Symbolic links that lead out of the repository.", initial: "fail", values: treatments},
	{path: "policy.change.symlinks", about: "Other new or changed symbolic links.", initial: "warn", values: treatments},
	{path: "policy.change.executables", about: "Files that are new and executable, or become executable.", initial: "warn", values: treatments},
	{path: "policy.change.lockfiles", about: "Files that pin dependencies, such as go.sum and package-lock.json.", initial: "allow", values: treatments},
	{path: "policy.rules", about: "More rules files besides .github/agent-ci.rules: paths in the base commit, or absolute paths of the operator's files.", form: rulesFile, example: "[.github/strict.rules]"},
	{path: "policy.env", about: "The environment of commands. Only what you list here is added."},
	{path: "policy.env.pass", about: "Names of variables that commands get with agent-ci's own values. Tokens and the API key cannot be passed.", form: variable},
	{path: "policy.env.set", about: "Variables that commands get with these values.", example: "{CGO_ENABLED: 0}", names: variable, form: variableValue},

	{path: "policy.secrets", about: "Credentials that commands use and never see: the proxy replaces a placeholder by the value. Needs network namespaces.", example: "[{name: NPM_TOKEN, preset: npm, hosts: [npm.example.com]}]", most: mostSecrets},
	{path: "policy.secrets[].name", about: "Variable in which commands find the placeholder.", required: true, filled: true, form: variable},
	{path: "policy.secrets[].from", about: "Where the value is: a variable, or a file with one line if it contains a slash. Empty: the variable called name.", form: secretFrom},
	{path: "policy.secrets[].preset", about: "Client whose configuration gets the placeholder: npm, pypi, goproxy, git, cargo, maven. Empty: none.", values: []string{"", PresetNPM, PresetPyPI, PresetGoProxy, PresetGit, PresetCargo, PresetMaven}},
	{path: "policy.secrets[].hosts", about: "Hosts that get the value, by https, optionally with a port and the start of a path. Commands may reach them.", required: true, form: secretHost, example: "[npm.example.com, 'git.example.com:8443/team']", most: mostScopes},
	{path: "policy.secrets[].private", about: "true: the hosts may have private addresses."},
	{path: "policy.secrets[].ca", about: "File with the hosts' certificate authorities: in the base commit, or absolute. Empty: those of the machine.", form: rulesFile},
	{path: "policy.secrets[].header", about: "Header with the value: whole, after a scheme such as Bearer, or as user or password of Basic authentication.", initial: headerAuthorization, form: headerName},
	{path: "policy.secrets[].parameter", about: "Query parameter with the value, in place of header.", form: parameterName},
	{path: "policy.secrets[].user", about: "User name beside the value, for the presets pypi, goproxy, maven and git, which each have a default.", form: basicUser},
	{path: "policy.secrets[].methods", about: "Request methods that may carry the value. The preset git sets its own.", initial: []string{"GET", "HEAD"}, form: method},
	{path: "policy.secrets[].commands", about: "Commands that get the placeholder: those of setup, agent or verify.", initial: []string{CommandsSetup}, form: secretCommands},
	{path: "policy.secrets[].server", about: "Id of the server in Maven's settings, which pom.xml uses. The preset maven needs it.", form: serverID},

	{path: "limits", about: "Limits of the run. One that is reached ends it as budget_exceeded."},
	{path: "limits.turns", about: "Requests to the model.", initial: 200, span: &span{1, many}},
	{path: "limits.tool_calls", about: "Tool calls.", initial: 500, span: &span{1, many}},
	{path: "limits.tokens", about: "Tokens read and written, in all requests.", initial: int64(4_000_000), span: &span{1, many}},
	{path: "limits.cost_usd", about: "US dollars for the model. 0: no limit. It needs a known price: without one, the default only warns and your own limit is refused.", initial: DefaultCostUSD},
	{path: "limits.time", about: "Time after which the agent stops. Checks keep their own timeouts.", initial: Duration(45 * time.Minute)},
	{path: "limits.diff_lines", about: "Lines that the change adds and removes.", initial: 5000, span: &span{1, many}},
	{path: "limits.diff_files", about: "Files that the change touches.", initial: 100, span: &span{1, many}},
	{path: "limits.file_size", about: "Bytes of a file in the change. Moved files do not count. A Git LFS file counts with its content.", initial: int64(5_000_000), span: &span{1, many}},
	{path: "limits.on_budget", about: "What happens to the work when a limit ends the run: keep it in the run directory, or publish a draft.", initial: "keep", values: []string{"keep", "draft"}},

	{path: "verify", about: "Checks: commands that judge the change, outside the model.", example: "[{name: tests, run: go test ./..., timeout: 10m, must: pass}]"},
	{path: "verify[].name", about: "Name of the check. Empty: the command itself.", form: oneLine},
	{path: "verify[].run", about: "Command for bash with -e and pipefail. Exit status 0 passes.", required: true, filled: true, form: notBlank},
	{path: "verify[].timeout", about: "Time limit of the check.", initial: Duration(10 * time.Minute)},
	{path: "verify[].must", about: "pass: it passes after the change. no_worse: it may fail if it failed before and is not worse now.", initial: "pass", values: []string{"pass", "no_worse"}},
	{path: "verify[].rerun", about: "How often a failed check reruns on the same files. If it then passes, it is flaky. Timeouts don't rerun.", initial: 1, span: &span{0, 5}},
	{path: "verify[].flaky", about: "reject: flaky counts as failed. accept: flaky counts as passed.", initial: "reject", values: []string{"reject", "accept"}},
	{path: "verify[].when", about: "Patterns of paths: the check runs only if the change touches one. Empty: it always runs.", form: pathPattern, example: "[docs/**, '*.md']"},
	{path: "verify[].proves", about: "true: the change's tests must fail on the base commit. required: a draft, unless the checks prove every test file.", initial: "false", values: []string{"false", "true", ProvesRequired}, scalars: true},
	{path: "verify[].junit", about: "JUnit XML files that the command writes. They name the failing tests; the exit status alone decides. Empty: agent-ci reads the output.", form: pathPattern},
	{path: "verify_attempts", about: "How often a failed check goes back to the agent.", initial: 2, span: &span{0, 10}},
	{path: "verify_tests", about: "Patterns of paths: the files of a change that count as tests or test data. Your list replaces the default.", initial: testPatterns, form: pathPattern},
	{path: "on_verify_failed", about: "What is published if a check still fails: a draft pull request or nothing.", initial: "draft", values: []string{"draft", "none"}},

	{path: "trigger", about: "Which events ask for work."},
	{path: "trigger.labels", about: "Labels that ask for work when somebody adds one to an issue.", initial: []string{"agent-ci"}, form: label},
	{path: "trigger.assignees", about: "Accounts that ask for work when somebody assigns an issue to one of them.", form: login},
	{path: "trigger.command", about: "First word of a comment or review that asks for work. Empty: none.", initial: "/agent-ci", form: commandWord},

	{path: "trust", about: "Whom the run listens to."},
	{path: "trust.roles", about: "Roles in the repository that may ask for work and whose comments count. Greater roles count too.", initial: []string{"write"}, form: role},
	{path: "trust.bots", about: "Logins of bots that may ask for work and whose comments count, such as renovate[bot]. No other bot counts.", form: login},
	{path: "trust.forks", about: "true: events of pull requests from forks may start a job with a task of its own. It works on the base alone."},
	{path: "trust.comments", about: "Whose comments the model sees: of trusted accounts, of all, or of none.", initial: "trusted", values: []string{"trusted", "all", "none"}},

	{path: "publish", about: "How the work is published."},
	{path: "publish.as", about: "pull_request publishes a change. review, labels and comment change no file and speak on the issue or pull request.", initial: "pull_request", values: []string{"pull_request", "review", "labels", "comment"}},
	{path: "publish.labels", about: "The labels that publish.as: labels may add. GitHub creates missing ones.", form: label, example: "[bug, question]"},

	{path: "repair", about: "What happens when checks fail later on a pull request of agent-ci."},
	{path: "repair.attempts", about: "How often agents try, until a person pushes to the branch or asks for more. 0: never.", initial: 3, span: &span{0, 10}},
	{path: "repair.cost_usd", about: "US dollars for all attempts together, at most limits.cost_usd each. 0: no limit. Needs a known price.", initial: 2 * DefaultCostUSD},
	{path: "repair.stop_label", about: "Label that keeps agent-ci away from a pull request.", initial: "agent-ci-hands-off", form: label},

	{path: "pull_request", about: "How a change is presented."},
	{path: "pull_request.branch", about: "Branch of the change. Empty: agent-ci/ and the task key.", form: branchForm},
	{path: "pull_request.title", about: "Title. Empty: from the task.", form: title},
	{path: "pull_request.draft", about: "true: always a draft, even if all checks pass."},
	{path: "pull_request.labels", about: "Labels to add. GitHub creates missing ones.", form: label},
	{path: "pull_request.reviewers", about: "Logins, or teams as ORGANISATION/TEAM, asked for a review when the pull request is opened.", form: reviewer, example: "[octocat, octo-org/core]"},
	{path: "pull_request.assignees", about: "Logins to assign.", form: login},
	{path: "pull_request.transcript", about: "How much of the transcript is shown: each call with its output (full), one line a call (digest), or nothing.", initial: "full", values: []string{"full", "digest", "none"}},
	{path: "pull_request.commit", about: "How the commit is made."},
	{path: "pull_request.commit.sign", about: "github: GitHub signs (tokens of an app or of Actions). ssh: an SSH key signs. Empty: unsigned.", values: []string{"", "github", "ssh"}},
	{path: "pull_request.commit.key_env", about: "Name of the variable with the private SSH key or the absolute path of its file. The key has no passphrase.", form: variable},
	{path: "pull_request.commit.co_author", about: "true: the commit names who asked for the work, or who wrote the issue, as co-author.", initial: true},

	{path: "mcp_servers", about: "MCP servers whose tools the model may call, by name. All start before the first request to the model.", example: "{docs: {command: docs-server, tools: [search]}}", names: serverName, most: mostMCPServers},
	{path: "mcp_servers.*.command", about: "Program of a server on standard streams, in its own sandbox. A server has command or url. ~/ and ${HOME} are replaced.", form: oneLine},
	{path: "mcp_servers.*.args", about: "Arguments of the program.", form: argument, example: "[--stdio]"},
	{path: "mcp_servers.*.cwd", about: "Folder below the workspace to start in, with workspace: read or write, without env.pass. Empty: a fresh tree of the base commit.", form: folder},
	{path: "mcp_servers.*.env", about: "Variables of the server."},
	{path: "mcp_servers.*.env.pass", about: "Names of variables that it gets with agent-ci's own values. Secrets are allowed: no other command sees them.", form: variable},
	{path: "mcp_servers.*.env.set", about: "Variables that it gets with these values.", example: "{LOG_LEVEL: warn}", names: variable, form: variableValue},
	{path: "mcp_servers.*.url", about: "Address of a streamable HTTP server, whose host is thereby allowed. http works for this machine and its network only.", form: serverURL},
	{path: "mcp_servers.*.headers", about: "More headers for every request. They appear in the transcript.", example: "{X-Team: build}", names: headerName, form: headerValue},
	{path: "mcp_servers.*.bearer_token_env", about: "Name of the variable with the bearer token, never the token itself.", form: variable},
	{path: "mcp_servers.*.tools", about: "Tools of the server that the model may call. [\"*\"]: all of them.", required: true, filled: true, form: oneLine, example: "[search, fetch]"},
	{path: "mcp_servers.*.deny", about: "Tools that the model may not call, with tools: [\"*\"].", form: oneLine},
	{path: "mcp_servers.*.required", about: "true: the run ends if the server or one of its tools is missing. false: it warns.", initial: true},
	{path: "mcp_servers.*.start_timeout", about: "Time limit for the start, including the download of a package.", initial: Duration(time.Minute)},
	{path: "mcp_servers.*.tool_timeout", about: "Time limit of a call.", initial: Duration(2 * time.Minute)},
	{path: "mcp_servers.*.network", about: "What the server reaches, as in policy.network.", initial: Network{Mode: modeLoopback}, values: []string{"none", "loopback", "full"}},
	{path: "mcp_servers.*.workspace", about: "Access of the server to the workspace. Its writes count as the agent's.", initial: "none", values: []string{"none", "read", "write"}},
	{path: "mcp_servers.*.defer", about: "true: the model finds its tools by searching only."},

	{path: "hooks", about: "Programs of yours that can refuse a call, a patch or the pull request, by name. A hook that fails refuses too.", example: "{guard: {on: PreToolUse, run: [.github/guard.py]}}", names: serverName, most: mostHooks},
	{path: "hooks.*.on", about: "Event that starts it.", required: true, values: hookEvents},
	{path: "hooks.*.run", about: "Program and arguments, without a shell. Relative paths are files of the base commit. ~/ and ${HOME} are replaced.", required: true, form: argument, example: "[.github/guard.py, --strict]"},
	{path: "hooks.*.tools", about: "Matchers of tools as in Claude Code: names with | between them, or a regular expression. Empty: all tools.", form: oneLine},
	{path: "hooks.*.argv", about: "First words of the commands that it is asked about. Empty: all commands.", form: argument, example: "[git, push]"},
	{path: "hooks.*.timeout", about: "Time limit of a call.", initial: Duration(10 * time.Second)},
	{path: "hooks.*.on_error", about: "If the hook gives no clean answer: refuse (fail), or warn and continue.", initial: "fail", values: []string{"fail", "continue"}},
	{path: "hooks.*.must_fire", about: "true: the run fails if the hook never gave a clean answer."},
	{path: "hooks.*.trusted", about: "operator: it runs outside the sandbox. Only the operator's file may say so.", values: []string{"", "operator"}},

	{path: "memory", about: "Lessons of earlier runs, in .agent-ci/lessons.yml of the base commit. The model learns of those that fit the task."},
	{path: "memory.propose", about: "Whether the model may propose lessons: no (off), within the change, or in a pull request of their own.", initial: "off", values: []string{"off", ProposeInChange, ProposeAlone}},
	{path: "agents", about: "Other agents that the agent may start."},
	{path: "agents.enabled", about: "true: the agent may start others."},
	{path: "agents.most", about: "How many may be open at once, including finished ones.", initial: 4, span: &span{1, 16}},
	{path: "agents.depth", about: "How deep agents may start others. 1: only the agent of the run does.", initial: 1, span: &span{1, 4}},
	{path: "agents.wait", about: "How long the run waits for the others when the agent has finished. Then they are stopped.", initial: Duration(5 * time.Minute)},
	{path: "agents.roles", about: "Roles of agents by name, besides explorer (reads only) and worker (changes a copy), whose settings you can change.", example: "{tester: {instructions: You write tests., writes: own}}", names: serverName, most: mostRoles},
	{path: "agents.roles.*.instructions", about: "Text that agents of this role get before their task. Empty: that of the built-in role.", form: notBlank},
	{path: "agents.roles.*.model", about: "Model of the role, at the same API. Empty: that of the agent that starts it.", form: oneLine},
	{path: "agents.roles.*.effort", about: "Reasoning effort. Empty: that of the agent that starts it.", values: []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}},
	{path: "agents.roles.*.tools", about: "Built-in tools that the role may call, of those that its starter has. Empty: all.", form: toolName, example: "[read_file, grep_files]"},
	{path: "agents.roles.*.writes", about: "What the role may change: nothing, its own copy (merged later), or its starter's workspace. Empty: the built-in role's setting.", values: []string{"", "none", "own", "shared"}},
}

// chatQuirks are those that requests can be made to fit.
var chatQuirks = []string{
	"no_stream_options", "no_stream", "no_reasoning_effort", "no_tool_choice", "no_response_format", "max_tokens", "no_additional_properties", "no_thoughts", "object_arguments",
	"no_null", "single_calls", "no_system", "alternate", "text_calls",
}

// ChatQuirks are the values of model.chat.
func ChatQuirks() []string { return slices.Clone(chatQuirks) }

// treatments are what can become of a doubtful change.
var treatments = []string{"fail", "warn", "allow"}

// TestPatterns are the default of verify_tests.
func TestPatterns() []string { return slices.Clone(testPatterns) }

// testPatterns are where tests and their data lie in projects of the common languages.
var testPatterns = []string{
	"*_test.*", "test_*.py", "conftest.py", "test_*.rb", "*_spec.rb", "*.test.*", "*.spec.*", "*.bats", "*.t",
	"**/test/**", "**/tests/**", "**/spec/**", "**/__tests__/**", "**/*.Tests/**", "**/testdata/**", "**/__snapshots__/**", "**/__fixtures__/**",
}
