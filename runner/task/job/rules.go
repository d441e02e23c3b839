package job

import (
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// rules has one entry for each field below Job, in the order of the fields.
var rules = []config.Rule{
	{Path: "version", About: "Version of the format. Every file needs it.", Initial: 1, Required: true, Span: config.Between(1, 1)},
	{Path: "name", About: "Task key. It names the branch and tells the runs of one task apart from others. Empty: `issue-N`, or `prompt-` and a digest.", Form: refPart},

	{Path: "task", About: "What to do. Give exactly one of prompt, prompt_file, issue and from."},
	{Path: "task.title", About: "Title of the task.", Form: form.OneLine},
	{Path: "task.prompt", About: "The task as text.", Form: form.NotBlank},
	{Path: "task.prompt_file", About: "File with the task as text, relative to the job file.", Form: form.RelativeFile},
	{Path: "task.issue", About: "Issue to work on: its number, OWNER/REPO#N or its address. Quote \"#7\": without quotes it is a YAML comment.", Form: form.IssueRef, Scalars: true},
	{Path: "task.from", About: "event: take the task from the event that started the workflow. A job without a task does so in GitHub Actions.", Values: []string{"", "event"}},
	{Path: "task.images", About: "Images for the model: PNG, JPEG or GIF files relative to the job file, or https addresses of images on GitHub.", Form: imageForm, Example: "[docs/mockup.png]"},
	{Path: "task.attachments", About: "images: send images attached to the issue and to trusted comments. none: for models without images.", Initial: "images", Values: []string{"images", "none"}},
	{Path: "task.expects", About: "Whether the run ends with a change or with an answer in words.", Initial: "change", Values: []string{"change", "answer"}},
	{Path: "task.questions", About: "assume: the model assumes the likely answer and says so. ask: it asks on the issue; the run ends as needs_input.", Initial: "assume", Values: []string{"assume", "ask"}},
	{Path: "task.output_schema", About: "File with a JSON Schema, relative to the job file. The run then writes output.json with an object that fits it.", Form: form.RelativeFile},

	{Path: "repository", About: "Where to work."},
	{Path: "repository.name", About: "Repository on GitHub. Empty: from the checkout or from GitHub Actions.", Form: form.Repository},
	{Path: "repository.base", About: "Branch to start from and to merge into. Empty: the branch that is checked out.", Form: form.Branch},
	{Path: "repository.commit", About: "Commit of the base branch to start from, with all its digits. Empty: the newest. The change is still merged onto the newest.", Form: form.Matching("a commit's SHA with all digits", `(?:[0-9a-f]{40}|[0-9a-f]{64})`)},
	{Path: "repository.path", About: "Subfolder of a monorepo to work in.", Initial: ".", Form: form.Folder, Filled: true},

	{Path: "applies_if", About: "Shell command that decides whether the job applies: exit status 0 for yes, 1 for no (the run ends as skipped). Limit: 5 minutes.", Form: form.NotBlank},

	{Path: "setup", About: "Commands that run in order before the baseline and the agent, without tokens.", Example: "[{name: modules, run: make deps, timeout: 5m}]"},
	{Path: "setup[].name", About: "Name of the command in reports. Empty: the command itself.", Form: form.OneLine},
	{Path: "setup[].run", About: "Shell command.", Required: true, Filled: true, Form: form.NotBlank},
	{Path: "setup[].network", About: "Network of this command, as in policy.network. Empty: that of policy.network.", Initial: Network{}, Example: allowExample, Values: []string{"", "none", "loopback", "full"}},
	{Path: "setup[].timeout", About: "Time limit of the command.", Initial: Duration(5 * time.Minute)},

	{Path: "recipe", About: "A command that makes the change, or a part of it, without a model. It may run again when a run is resumed."},
	{Path: "recipe.run", About: "Shell command that changes the checkout, such as a formatter or codemod.", Form: form.NotBlank},
	{Path: "recipe.agent", About: "when_red: the agent works only if a check fails after the recipe. Without checks it always works.", Initial: "when_red", Values: []string{"when_red", "always"}},
	{Path: "recipe.timeout", About: "Time limit of the command.", Initial: Duration(10 * time.Minute)},

	{Path: "services", About: "Databases and other servers that commands reach at 127.0.0.1, by name.", Example: "{db: {run: redis-server --port 6379, port: 6379}}", Names: serviceName, Most: MostServices},
	{Path: "services.*.run", About: "Shell command that starts the server and stays in the foreground. It restarts with empty data for every setup command, agent attempt and check.", Form: form.NotBlank},
	{Path: "services.*.init", About: "Commands that run in order once the service is ready, such as one that creates a database.", Form: form.NotBlank, Filled: true, Example: "[createdb -h 127.0.0.1 app]"},
	{Path: "services.*.ready", About: "When the service counts as ready."},
	{Path: "services.*.ready.run", About: "Command that agent-ci repeats until it exits with 0. Empty: the service is ready when its port accepts connections.", Form: form.NotBlank},
	{Path: "services.*.ready.timeout", About: "Time limit for the service to become ready, and for each init command.", Initial: Duration(time.Minute)},
	{Path: "services.*.env", About: "More variables for the service and its commands.", Example: "{PGUSER: postgres}", Names: form.Variable, Form: form.VariableValue},
	{Path: "services.*.port", About: "Port at which the service listens and commands find it. With at: the port of that address if you leave it out.", Span: config.Between(0, 65535)},
	{Path: "services.*.user", About: "User name or number that the service sees as its own, for programs that refuse root, such as PostgreSQL.", Form: serviceUser, Scalars: true},
	{Path: "services.*.at", About: "HOST:PORT of a server that runs already, at a loopback or private address. Its name is resolved once, before the run.", Form: serviceAt},

	{Path: "model", About: "Which model answers, and how agent-ci reaches it."},
	{Path: "model.name", About: "Name of the model, as the API knows it.", Initial: "gpt-5.4", Filled: true, Form: form.OneLine},
	{Path: "model.fallbacks", About: "Models at the same API that continue, in this order, if the one before is unavailable or out of quota. All take the same tools.", Form: form.FilledLine, Example: "[gpt-5.2, gpt-5]"},
	{Path: "model.api_key_env", About: "Name of the variable with the API key, never the key itself. Empty: no key is sent.", Initial: "OPENAI_API_KEY", Form: form.Variable},
	{Path: "model.auth", About: "key: the API key in api_key_env. oidc: an hourly key for the CI job's identity (OpenAI only).", Initial: "key", Values: []string{"key", "oidc"}},
	{Path: "model.identity", About: "The identity for auth: oidc. None of it is secret."},
	{Path: "model.identity.provider_id", About: "Id of the identity provider at OpenAI. Empty: OPENAI_IDENTITY_PROVIDER_ID.", Form: form.OneLine},
	{Path: "model.identity.service_account_id", About: "Service account that the keys belong to. Empty: OPENAI_SERVICE_ACCOUNT_ID.", Form: form.OneLine},
	{Path: "model.identity.token_file", About: "Absolute path of the token file. Commands cannot read it. Empty: OPENAI_IDENTITY_TOKEN_FILE, or a token from GitHub Actions.", Form: absoluteFile},
	{Path: "model.base_url", About: "Address of the API. Empty: OPENAI_BASE_URL, or OpenAI. http works for this machine and its network only.", Form: webAddress},
	{Path: "model.headers", About: "More headers for every request. They appear in the transcript, so put no key here.", Example: "{X-Team: build}", Names: headerName, Form: headerValue},
	{Path: "model.wire", About: "responses: the Responses API. chat: Chat Completions, for endpoints that have nothing else.", Initial: "responses", Values: []string{"responses", "chat"}},
	{Path: "model.chat", About: "Quirks of a chat endpoint, from agent-ci doctor --online.", Example: "[no_system, alternate]", Values: chatQuirks},
	{Path: "model.stream", About: "false: ask for answers in one piece, for endpoints that cannot stream. An answer may take 15 minutes.", Initial: true},
	{Path: "model.reasoning_effort", About: "How much the model thinks. Empty: send nothing, for models that do not reason.", Initial: "medium", Values: []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}},
	{Path: "model.reasoning_summary", About: "Summary of the model's thoughts, for the transcript. Empty: none.", Values: []string{"", "auto", "concise", "detailed"}},
	{Path: "model.service_tier", About: "Processing tier. Empty: your project's. A full or unknown one falls back to the default.", Values: []string{"", "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}},
	{Path: "model.max_output_tokens", About: "Most tokens in one answer, including reasoning. 0: the model's own limit.", Span: config.Between(0, config.Many)},
	{Path: "model.context_window", About: "Tokens that fit into one request and its answer. 0: from the model's profile, or 128000. agent-ci shortens conversations at 85 %.", Span: config.Between(0, config.Many)},
	{Path: "model.tools", About: "Form of the model's tools. auto: freeform, function or code, by model.", Initial: "auto", Values: slices.Concat([]string{"auto", "freeform", "function", "builtin", "code"}, dialect.Families(), []string{ToolsAiderDiff, ToolsAiderUdiff, ToolsAiderWhole})},
	{Path: "model.outage", About: "Most time that the run spends on retries and pauses in all.", Initial: Duration(10 * time.Minute)},
	{Path: "model.price", About: "What the model costs. Empty: the price in its profile, if known."},
	{Path: "model.price.input", About: "US dollars for a million input tokens."},
	{Path: "model.price.cached", About: "US dollars for a million input tokens from the provider's cache. 0: as input."},
	{Path: "model.price.output", About: "US dollars for a million output tokens."},

	{Path: "tools", About: "Which tools the model may call."},
	{Path: "tools.allow", About: "The only tools that the model gets. Empty: all that suit it.", Form: toolName},
	{Path: "tools.deny", About: "Tools that the model does not get and cannot call, even if allow lists them.", Form: toolName},
	{Path: "tools.hosted", About: "Tools that the API runs itself: web_search, file_search, code_interpreter, mcp, image_generation. A type, or a mapping as the API describes it.", Example: "[web_search, {type: file_search, vector_store_ids: [vs_1]}]", Foreign: hosted},
	{Path: "tools.dynamic", About: "Tools of your own: programs that run in the agent's sandbox.", Example: "[{name: lookup, description: Looks a word up., input_schema: {type: object}, run: [./lookup.sh]}]", Most: mostDynamicTools},
	{Path: "tools.dynamic[].name", About: "Name of the tool.", Required: true, Filled: true, Form: dynamicName},
	{Path: "tools.dynamic[].description", About: "What the tool does, for the model.", Required: true, Filled: true, Form: form.NotBlank},
	{Path: "tools.dynamic[].input_schema", About: "JSON Schema of the arguments, an object.", Required: true, Foreign: inputSchema},
	{Path: "tools.dynamic[].run", About: "Script, or program and arguments as a list. It reads the arguments as JSON on standard input and prints the result."},
	{Path: "tools.dynamic[].timeout", About: "Time limit of a call.", Initial: Duration(5 * time.Minute)},
	{Path: "tools.dynamic[].defer", About: "true: the model finds the tool by searching only."},
	{Path: "tools.js_repl", About: "true: the model may run JavaScript in a Node process that keeps its variables. Needs Node 18 or newer."},

	{Path: "skills", About: "Skills of the repository: folders with a SKILL.md that the model may load."},
	{Path: "skills.folders", About: "Folders of the base commit with skills. The first skill of a name counts. An empty list switches skills off.", Initial: []string{".agents/skills", ".claude/skills"}, Form: skillFolder},

	{Path: "git", About: "What git may do in the checkout."},
	{Path: "git.filters", About: "Filters in .git/config that may run, in a sandbox. Any other filter there ends the run. Git LFS needs no entry.", Example: "[{name: nbstripout}]"},
	{Path: "git.filters[].name", About: "NAME of filter.NAME in git's configuration.", Required: true, Filled: true, Form: form.OneLine},
	{Path: "git.filters[].reads", About: "Paths that the filter may read besides its standard input, such as a key. Written as in policy.writable.", Form: form.OneLine, Example: "[.git/git-crypt]"},

	{Path: "policy", About: "What commands and changes may do."},
	{Path: "policy.sandbox", About: "What commands may write: only temporary files, also the workspace, or anything. danger-full-access confines nothing, and each run warns.", Initial: "workspace-write", Values: []string{"read-only", "workspace-write", "danger-full-access"}},
	{Path: "policy.require", About: "The least confinement that you accept: landlock, namespaces, or full for both. Empty: any.", Values: []string{"", "landlock", "namespaces", "full"}},
	{Path: "policy.network", About: "What commands reach: nothing, their own loopback, everything, or that loopback and a list of hosts.", Initial: Network{Mode: modeLoopback}, Example: allowExample, Values: []string{"none", "loopback", "full"}},
	{Path: "policy.writable", About: "More folders that commands may write: relative to the repository, below ~/, or absolute.", Form: form.OneLine, Example: "[~/.gradle]"},
	{Path: "policy.deny_read", About: "Paths that commands and tools may not read, besides credentials. Written as in writable. git must not track them.", Form: form.OneLine, Example: "[secrets, /opt/licences]"},
	{Path: "policy.protect", About: "More patterns of paths that the change may not touch, besides those protected by default. !PATTERN opens one of the defaults.", Form: protectPattern, Example: "[deploy/**, '!AGENTS.md']"},
	{Path: "policy.change", About: "How doubtful parts of a change are treated. fail: nothing is published. warn: published with a warning. allow: published."},
	{Path: "policy.change.protected", About: "Files that policy.protect matches. drop: leave them out with a warning and publish the rest.", Initial: "fail", Values: append(slices.Clone(treatments), "drop")},
	{Path: "policy.change.submodules", About: "New, deleted or moved submodules. A commit that exists only in this run is never part of the change.", Initial: "fail", Values: treatments},
	{Path: "policy.change.nested_git", About: "Repositories inside the repository. Their content is never part of the change.", Initial: "fail", Values: treatments},
	{Path: "policy.change.symlinks_out", About: "Symbolic links that lead out of the repository.", Initial: "fail", Values: treatments},
	{Path: "policy.change.symlinks", About: "Other new or changed symbolic links.", Initial: "warn", Values: treatments},
	{Path: "policy.change.executables", About: "Files that are new and executable, or become executable.", Initial: "warn", Values: treatments},
	{Path: "policy.change.lockfiles", About: "Files that pin dependencies, such as go.sum and package-lock.json.", Initial: "allow", Values: treatments},
	{Path: "policy.silenced", About: "A change with signs that a check passes without testing. show: the pull request lists them. draft: it is also a draft. refuse: nothing is published.", Initial: "draft", Values: foundTreatments},
	{Path: "policy.workflow_risk", About: "A change of files that workflows with secrets or write permissions run on the pushed branch. show: the pull request lists them. draft: it is also a draft. refuse: nothing is published.", Initial: "draft", Values: foundTreatments},
	{Path: "policy.rules", About: "More rules files besides .github/agent-ci.rules: paths in the base commit, or absolute paths of the operator's files.", Form: rulesFile, Example: "[.github/strict.rules]"},
	{Path: "policy.env", Meant: envKey, About: "The environment of commands. Only what you list here is added."},
	{Path: "policy.env.pass", About: "Names of variables that commands get with agent-ci's own values. Tokens and the API key cannot be passed.", Form: form.Variable},
	{Path: "policy.env.set", About: "Variables that commands get with these values.", Example: "{CGO_ENABLED: 0}", Names: form.Variable, Form: form.VariableValue},

	{Path: "policy.secrets", About: "Credentials that commands use and never see: the proxy replaces a placeholder by the value. Needs network namespaces.", Example: "[{name: NPM_TOKEN, preset: npm, hosts: [npm.example.com]}]", Most: mostSecrets},
	{Path: "policy.secrets[].name", About: "Variable in which commands find the placeholder.", Required: true, Filled: true, Form: form.Variable},
	{Path: "policy.secrets[].from", About: "Where the value is: a variable, or a file with one line if it contains a slash. Empty: the variable called name.", Form: secretFrom},
	{Path: "policy.secrets[].preset", About: "Client whose configuration gets the placeholder: npm, pypi, goproxy, git, cargo, maven. Empty: none.", Values: []string{"", PresetNPM, PresetPyPI, PresetGoProxy, PresetGit, PresetCargo, PresetMaven}},
	{Path: "policy.secrets[].hosts", About: "Hosts that get the value, by https, optionally with a port and the start of a path. Commands may reach them.", Required: true, Form: secretHost, Least: 1, Example: "[npm.example.com, 'git.example.com:8443/team']", Most: mostScopes},
	{Path: "policy.secrets[].private", About: "true: the hosts may have private addresses."},
	{Path: "policy.secrets[].ca", About: "File with the hosts' certificate authorities: in the base commit, or absolute. Empty: those of the machine.", Form: rulesFile},
	{Path: "policy.secrets[].header", About: "Header with the value: whole, after a scheme such as Bearer, or as user or password of Basic authentication.", Initial: headerAuthorization, Form: headerName},
	{Path: "policy.secrets[].parameter", About: "Query parameter with the value, in place of header.", Form: parameterName},
	{Path: "policy.secrets[].user", About: "User name beside the value, for the presets pypi, goproxy, maven and git, which each have a default.", Form: basicUser},
	{Path: "policy.secrets[].methods", About: "Request methods that may carry the value. The preset git sets its own.", Initial: []string{"GET", "HEAD"}, Form: method},
	{Path: "policy.secrets[].commands", About: "Commands that get the placeholder: those of setup, agent or verify.", Initial: []string{CommandsSetup}, Values: []string{CommandsAgent, CommandsSetup, CommandsVerify}, Least: 1},
	{Path: "policy.secrets[].server", About: "Id of the server in Maven's settings, which pom.xml uses. The preset maven needs it.", Form: serverID},

	{Path: "limits", About: "Limits of the run. One that is reached ends it as budget_exceeded."},
	{Path: "limits.turns", About: "Requests to the model.", Initial: 200, Span: config.Between(1, config.Many)},
	{Path: "limits.tool_calls", About: "Tool calls.", Initial: 500, Span: config.Between(1, config.Many)},
	{Path: "limits.tokens", About: "Tokens read and written, in all requests.", Initial: int64(4_000_000), Span: config.Between(1, config.Many)},
	{Path: "limits.cost_usd", About: "US dollars for the model. 0: no limit. It needs a known price: without one, the default only warns and your own limit is refused.", Initial: DefaultCostUSD},
	{Path: "limits.time", About: "Time after which the agent stops, counted from the start of the run. Checks keep their own timeouts.", Initial: Duration(45 * time.Minute)},
	{Path: "limits.diff_lines", About: "Lines that the change adds and removes.", Initial: 5000, Span: config.Between(1, config.Many)},
	{Path: "limits.diff_files", About: "Files that the change touches.", Initial: 100, Span: config.Between(1, config.Many)},
	{Path: "limits.file_size", About: "Bytes of a file in the change. Moved files do not count. A Git LFS file counts with its content.", Initial: int64(5_000_000), Span: config.Between(1, config.Many)},
	{Path: "limits.on_budget", About: "What happens to the work when a limit ends the run: keep it in the run directory, or publish a draft.", Initial: "keep", Values: []string{"keep", "draft"}},

	{Path: "verify", About: "Checks: commands that judge the change, outside the model.", Example: "[{name: tests, run: go test ./..., timeout: 10m, must: pass}]"},
	{Path: "verify[].name", About: "Name of the check. Empty: the command itself.", Form: form.OneLine},
	{Path: "verify[].run", About: "Command for bash with -e and pipefail. Exit status 0 passes.", Required: true, Filled: true, Form: form.NotBlank},
	{Path: "verify[].timeout", About: "Time limit of the check.", Initial: Duration(10 * time.Minute)},
	{Path: "verify[].must", About: "pass: it passes after the change. no_worse: it may fail if it failed before and is not worse now.", Initial: "pass", Values: []string{"pass", "no_worse"}},
	{Path: "verify[].rerun", About: "How often a failed check reruns on the same files. If it then passes, it is flaky. Timeouts don't rerun.", Initial: 1, Span: config.Between(0, 5)},
	{Path: "verify[].flaky", About: "reject: flaky counts as failed. accept: flaky counts as passed.", Initial: "reject", Values: []string{"reject", "accept"}},
	{Path: "verify[].when", About: "Patterns of paths: the check runs only if the change touches one. Empty: it always runs.", Form: pathPattern, Example: "[docs/**, '*.md']"},
	{Path: "verify[].proves", About: "true: the change's tests must fail on the base commit. required: a draft, unless the checks prove every test file.", Initial: "false", Values: []string{"false", "true", ProvesRequired}, Scalars: true},
	{Path: "verify[].junit", About: "JUnit XML files that the command writes. They name the failing tests; the exit status alone decides. Empty: agent-ci reads the output.", Form: pathPattern},
	{Path: "verify_attempts", About: "How often a failed check goes back to the agent.", Initial: 2, Span: config.Between(0, 10)},
	{Path: "verify_tests", About: "Patterns of paths: the files of a change that count as tests or test data. Your list replaces the default.", Initial: testPatterns, Form: pathPattern},
	{Path: "on_verify_failed", About: "What is published if a check still fails: a draft pull request or nothing.", Initial: "draft", Values: []string{"draft", "none"}},

	{Path: "trigger", About: "Which events ask for work."},
	{Path: "trigger.labels", About: "Labels that ask for work when somebody adds one to an issue.", Initial: []string{"agent-ci"}, Form: form.Label},
	{Path: "trigger.assignees", About: "Accounts that ask for work when somebody assigns an issue to one of them.", Form: form.Login},
	{Path: "trigger.command", About: "First word of a comment or review that asks for work. Empty: none.", Initial: "/agent-ci", Form: commandWord},

	{Path: "trust", About: "Whom the run listens to."},
	{Path: "trust.roles", About: "Roles in the repository that may ask for work and whose comments count. Greater roles count too.", Initial: []string{"write"}, Values: []string{"read", "triage", "write", "maintain", "admin"}},
	{Path: "trust.bots", About: "Logins of bots that may ask for work and whose comments count, such as renovate[bot]. No other bot counts.", Form: form.Login},
	{Path: "trust.forks", About: "true: events of pull requests from forks may start a job with a task of its own. It works on the base alone."},
	{Path: "trust.comments", About: "Whose comments the model sees: of trusted accounts, of all, or of none.", Initial: "trusted", Values: []string{"trusted", "all", "none"}},

	{Path: "publish", About: "How the work is published."},
	{Path: "publish.as", About: "pull_request publishes a change. review, labels and comment change no file and speak on the issue or pull request.", Initial: "pull_request", Values: []string{"pull_request", "review", "labels", "comment"}},
	{Path: "publish.labels", About: "The labels that publish.as: labels may add. GitHub creates missing ones.", Form: form.Label, Example: "[bug, question]"},

	{Path: "repair", About: "What happens when checks fail later on a pull request of agent-ci."},
	{Path: "repair.attempts", About: "How often agents try, until a person pushes to the branch or asks for more. 0: never.", Initial: 3, Span: config.Between(0, 10)},
	{Path: "repair.cost_usd", About: "US dollars for all attempts together, at most limits.cost_usd each. 0: no limit. Needs a known price.", Initial: 2 * DefaultCostUSD},
	{Path: "repair.stop_label", About: "Label that keeps agent-ci away from a pull request.", Initial: "agent-ci-hands-off", Form: form.Label},

	{Path: "pull_request", About: "How a change is presented."},
	{Path: "pull_request.branch", About: "Branch of the change. Empty: agent-ci/ and the task key.", Form: form.Branch},
	{Path: "pull_request.title", About: "Title. Empty: from the task.", Form: title},
	{Path: "pull_request.draft", About: "true: always a draft, even if all checks pass."},
	{Path: "pull_request.labels", About: "Labels to add. GitHub creates missing ones.", Form: form.Label},
	{Path: "pull_request.reviewers", About: "Logins, or teams as ORGANISATION/TEAM, asked for a review when the pull request is opened.", Form: reviewer, Example: "[octocat, octo-org/core]"},
	{Path: "pull_request.assignees", About: "Logins to assign.", Form: form.Login},
	{Path: "pull_request.transcript", About: "How much of the transcript is shown: each call with its output (full), one line a call (digest), or nothing.", Initial: "full", Values: []string{"full", "digest", "none"}},
	{Path: "pull_request.commit", About: "How the commit is made."},
	{Path: "pull_request.commit.sign", About: "github: GitHub signs (tokens of an app or of Actions). ssh: an SSH key signs. Empty: unsigned.", Values: []string{"", "github", "ssh"}},
	{Path: "pull_request.commit.key_env", About: "Name of the variable with the private SSH key or the absolute path of its file. The key has no passphrase.", Form: form.Variable},
	{Path: "pull_request.commit.co_author", About: "true: the commit names who asked for the work, or who wrote the issue, as co-author.", Initial: true},

	{Path: "mcp_servers", About: "MCP servers whose tools the model may call, by name. All start before the first request to the model.", Example: "{docs: {command: docs-server, tools: [search]}}", Names: serverName, Most: mostMCPServers},
	{Path: "mcp_servers.*.command", About: "Program of a server on standard streams, in its own sandbox. A server has command or url. ~/ and ${HOME} are replaced.", Form: form.OneLine},
	{Path: "mcp_servers.*.args", About: "Arguments of the program.", Form: form.VariableValue, Example: "[--stdio]"},
	{Path: "mcp_servers.*.cwd", About: "Folder below the workspace to start in, with workspace: read or write, without env.pass. Empty: a fresh tree of the base commit.", Form: form.Folder},
	{Path: "mcp_servers.*.env", Meant: envKey, About: "Variables of the server."},
	{Path: "mcp_servers.*.env.pass", About: "Names of variables that it gets with agent-ci's own values. Secrets are allowed: no other command sees them.", Form: form.Variable},
	{Path: "mcp_servers.*.env.set", About: "Variables that it gets with these values.", Example: "{LOG_LEVEL: warn}", Names: form.Variable, Form: form.VariableValue},
	{Path: "mcp_servers.*.url", About: "Address of a streamable HTTP server, whose host is thereby allowed. http works for this machine and its network only.", Form: serverURL},
	{Path: "mcp_servers.*.headers", About: "More headers for every request. They appear in the transcript.", Example: "{X-Team: build}", Names: headerName, Form: headerValue},
	{Path: "mcp_servers.*.bearer_token_env", About: "Name of the variable with the bearer token, never the token itself.", Form: form.Variable},
	{Path: "mcp_servers.*.tools", About: "Tools of the server that the model may call. [\"*\"]: all of them.", Required: true, Least: 1, Form: form.OneLine, Example: "[search, fetch]"},
	{Path: "mcp_servers.*.deny", About: "Tools that the model may not call, with tools: [\"*\"].", Form: form.OneLine},
	{Path: "mcp_servers.*.required", About: "true: the run ends if the server or one of its tools is missing. false: it warns.", Initial: true},
	{Path: "mcp_servers.*.start_timeout", About: "Time limit for the start, including the download of a package.", Initial: Duration(time.Minute)},
	{Path: "mcp_servers.*.tool_timeout", About: "Time limit of a call.", Initial: Duration(2 * time.Minute)},
	{Path: "mcp_servers.*.network", About: "What the server reaches, as in policy.network.", Initial: Network{Mode: modeLoopback}, Example: allowExample, Values: []string{"none", "loopback", "full"}},
	{Path: "mcp_servers.*.workspace", About: "Access of the server to the workspace. Its writes count as the agent's.", Initial: "none", Values: []string{"none", "read", "write"}},
	{Path: "mcp_servers.*.defer", About: "true: the model finds its tools by searching only."},

	{Path: "hooks", Meant: hookKey, About: "Programs of yours that can refuse a call, a patch or the pull request, by name. A hook that fails refuses too.", Example: "{guard: {on: PreToolUse, run: [.github/guard.py]}}", Names: serverName, Most: mostHooks},
	{Path: "hooks.*.on", About: "Event that starts it.", Required: true, Values: hookEvents},
	{Path: "hooks.*.run", About: "Program and arguments, without a shell. Relative paths are files of the base commit. ~/ and ${HOME} are replaced.", Required: true, Least: 1, Form: form.VariableValue, Example: "[.github/guard.py, --strict]"},
	{Path: "hooks.*.tools", About: "Matchers of tools as in Claude Code: names with | between them, or a regular expression. Empty: all tools.", Form: form.OneLine},
	{Path: "hooks.*.argv", About: "First words of the commands that it is asked about. Empty: all commands.", Form: form.VariableValue, Example: "[git, push]"},
	{Path: "hooks.*.timeout", About: "Time limit of a call.", Initial: Duration(10 * time.Second)},
	{Path: "hooks.*.on_error", About: "If the hook gives no clean answer: refuse (fail), or warn and continue.", Initial: "fail", Values: []string{"fail", "continue"}},
	{Path: "hooks.*.must_fire", About: "true: the run fails if the hook never gave a clean answer."},
	{Path: "hooks.*.trusted", About: "operator: it runs outside the sandbox. Only the operator's file may say so.", Values: []string{"", "operator"}},

	{Path: "memory", About: "Lessons of earlier runs, in .agent-ci/lessons.yml of the base commit. The model learns of those that fit the task."},
	{Path: "memory.propose", About: "Whether the model may propose lessons: no (off), within the change, or in a pull request of their own.", Initial: "off", Values: []string{"off", ProposeInChange, ProposeAlone}},
	{Path: "agents", About: "Other agents that the agent may start."},
	{Path: "agents.enabled", About: "true: the agent may start others."},
	{Path: "agents.most", About: "How many may be open at once, including finished ones.", Initial: 4, Span: config.Between(1, 16)},
	{Path: "agents.depth", About: "How deep agents may start others. 1: only the agent of the run does.", Initial: 1, Span: config.Between(1, 4)},
	{Path: "agents.wait", About: "How long the run waits for the others when the agent has finished. Then they are stopped.", Initial: Duration(5 * time.Minute)},
	{Path: "agents.roles", About: "Roles of agents by name, besides explorer (reads only) and worker (changes a copy), whose settings you can change.", Example: "{tester: {instructions: You write tests., writes: own}}", Names: serverName, Most: mostRoles},
	{Path: "agents.roles.*.instructions", About: "Text that agents of this role get before their task. Empty: that of the built-in role.", Form: form.NotBlank},
	{Path: "agents.roles.*.model", About: "Model of the role, at the same API. Empty: that of the agent that starts it.", Form: form.OneLine},
	{Path: "agents.roles.*.effort", About: "Reasoning effort. Empty: that of the agent that starts it.", Values: []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}},
	{Path: "agents.roles.*.tools", About: "Built-in tools that the role may call, of those that its starter has. Empty: all.", Form: toolName, Example: "[read_file, grep_files]"},
	{Path: "agents.roles.*.writes", About: "What the role may change: nothing, its own copy (merged later), or its starter's workspace. Empty: the built-in role's setting.", Values: []string{"", "none", "own", "shared"}},
}

// chatQuirks lists the endpoint quirks that requests can be adapted to.
var chatQuirks = []string{
	"no_stream_options", "no_stream", "no_reasoning_effort", "no_tool_choice", "no_response_format", "max_tokens", "no_additional_properties", "no_thoughts", "object_arguments",
	"no_null", "single_calls", "no_system", "alternate", "text_calls",
}

// ChatQuirks are the values of model.chat.
func ChatQuirks() []string { return slices.Clone(chatQuirks) }

// treatments lists the treatments of a doubtful change.
var treatments = []string{"fail", "warn", "allow"}

// TestPatterns are the default of verify_tests.
func TestPatterns() []string { return slices.Clone(testPatterns) }

// testPatterns match tests and their data in projects of the common languages.
var testPatterns = []string{
	"*_test.*", "test_*.py", "conftest.py", "test_*.rb", "*_spec.rb", "*.test.*", "*.spec.*", "*.bats", "*.t",
	"**/test/**", "**/tests/**", "**/spec/**", "**/__tests__/**", "**/*.Tests/**", "**/testdata/**", "**/__snapshots__/**", "**/__fixtures__/**",
}
