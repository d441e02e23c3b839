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
	{path: "version", about: "Version of the format. Every file names it.", initial: 1, required: true, span: &span{1, 1}},
	{path: "name", about: "Task key: names the branch and tells runs of one task from another's. Empty: issue-N, else prompt- and 8 hex digits of the prompt's SHA-256. Where the task comes from an event on an issue, -issue-N is added.", form: refPart},

	{path: "task", about: "What to do. Exactly one of prompt, prompt_file, issue and from is given; one in a higher layer replaces one in a lower."},
	{path: "task.title", about: "One line that names the task.", form: oneLine},
	{path: "task.prompt", about: "The task as text.", form: notBlank},
	{path: "task.prompt_file", about: "File that holds the task as text, relative to the job file.", form: relativeFile},
	{path: "task.issue", about: "The issue to work on: OWNER/REPO#N or its address (https://HOST/OWNER/REPO/issues/N), or N or \"#N\" in the repository. The address must be of the server that the run asks, and of repository.name where that is set. Quote #N: without quotes it is a YAML comment.", form: issueForm, scalars: true},
	{path: "task.from", about: "event: take the task from the event that started the workflow, which is what a job without a task does in GitHub Actions.", values: []string{"", "event"}},
	{path: "task.images", about: "Images that go to the model with the task: PNG, JPEG or GIF files, relative to the job file, or https addresses of images on GitHub.", form: imageForm, example: "[docs/mockup.png]"},
	{path: "task.attachments", about: "What goes to the model of what is attached to the issue and to comments that count: images on GitHub's own hosts (at most 8, of 10 MiB each), or none. Say none for a model that takes no images.", initial: "images", values: []string{"images", "none"}},
	{path: "task.expects", about: "Whether the task ends in a change or in an answer.", initial: "change", values: []string{"change", "answer"}},
	{path: "task.questions", about: "What the model does about what it would ask: assume the likely answer and say so, or ask on the issue and end the run as needs_input. Without an issue it assumes.", initial: "assume", values: []string{"assume", "ask"}},
	{path: "task.output_schema", about: "File with a JSON Schema, relative to the job file. A last request then gives a JSON object that fits it, which is written to output.json in the run directory.", form: relativeFile},

	{path: "repository", about: "Where to work."},
	{path: "repository.name", about: "OWNER/REPO on the forge. Empty: known from the checkout or from Actions.", form: repositoryForm},
	{path: "repository.base", about: "Branch to start from and to merge into. Empty: the one that is checked out.", form: branchForm},
	{path: "repository.commit", about: "Commit of that branch to start from, with all of its digits, in the place of the newest. The change is merged onto the branch as it is when it is published.", form: matching("a commit's SHA with all digits", `(?:[0-9a-f]{40}|[0-9a-f]{64})`)},
	{path: "repository.path", about: "Sub-folder of a monorepo to work in, slash-separated.", initial: ".", form: folder, filled: true},

	{path: "applies_if", about: "Command, for a shell, that says in a fresh tree of the base, before setup commands and the first request, whether there is anything to do: 0 for yes, 1 for no, which ends the run as skipped. Any other status is an error. It has 5 minutes.", form: notBlank},

	{path: "setup", about: "Commands that run in order before the baseline and the first turn, without tokens.", example: "[{name: modules, run: make deps, timeout: 5m}]"},
	{path: "setup[].name", about: "How the command is called in reports. Empty: the command itself.", form: oneLine},
	{path: "setup[].run", about: "The command, for a shell.", required: true, filled: true, form: notBlank},
	{path: "setup[].network", about: "The network that this command has, written as policy.network is. Empty: that of policy.network.", values: []string{"", "none", "loopback", "full"}},
	{path: "setup[].timeout", about: "How long it may take.", initial: Duration(5 * time.Minute)},

	{path: "recipe", about: "A command that changes the checkout, before the agent and without a model. Its change is part of the run's. It may run again where a run goes on."},
	{path: "recipe.run", about: "The command, for a shell, such as a formatter or a codemod.", form: notBlank},
	{path: "recipe.agent", about: "Whether the agent works after it: when checks are red then, or always. Without checks that is always.", initial: "when_red", values: []string{"when_red", "always"}},
	{path: "recipe.timeout", about: "How long it may take.", initial: Duration(10 * time.Minute)},

	{path: "services", about: "What commands find at a port of their own 127.0.0.1, such as a database, by names: what run starts, or what runs already at an address. Setup commands that have a network of their own, none or full, find none.", example: "{db: {run: redis-server --port 6379, port: 6379}}", names: serviceName, most: MostServices},
	{path: "services.*.run", about: "The command that stays there and serves, for a shell. It listens on the port at 127.0.0.1 or any address, and is started anew, with nothing from before, for each setup command, each attempt of the agent and each check. It finds the run's tree as they do, read-only; $SERVICE_DATA is a folder of its own, $SERVICE_PORT the port.", form: notBlank},
	{path: "services.*.init", about: "Commands that run in order once the service is ready, beside it, such as one that creates a database.", form: notBlank, filled: true, example: "[createdb -h 127.0.0.1 app]"},
	{path: "services.*.ready", about: "When the service is ready. A service that does not get ready ends the run; on the agent's change it makes the check red."},
	{path: "services.*.ready.run", about: "A command that is tried, beside the service, until its exit status is 0.", form: notBlank},
	{path: "services.*.ready.timeout", about: "How long the service may take to get ready, and each command of init.", initial: Duration(time.Minute)},
	{path: "services.*.env", about: "Variables that the service and its commands see besides those that all commands do.", example: "{PGUSER: postgres}", names: variable, form: variableValue},
	{path: "services.*.port", about: "The port at which commands find the service at 127.0.0.1, and at which it listens. Of at: the same port where none is given.", span: &span{0, 65535}},
	{path: "services.*.user", about: "User, by name or number, for whom the service and its commands take themselves, for programs that refuse user 0, as PostgreSQL does. On the machine they are who starts agent-ci.", form: serviceUser, scalars: true},
	{path: "services.*.at", about: "HOST:PORT of something that runs already, at a loopback or a private address; a name is resolved once, before the run.", form: serviceAt},

	{path: "model", about: "Which model answers and how it is reached."},
	{path: "model.name", about: "The model's name, as the API knows it.", initial: "gpt-5.4", filled: true, form: oneLine},
	{path: "model.fallbacks", about: "Models to go on with, in this order, where the one before is not there or may not be used, has no quota left, or is out for longer than attempts and outage give it; never after a refusal of content. They are at the same API, and take the same tools. Of them their profiles hold, not context_window and price.", form: filledLine, example: "[gpt-5.2, gpt-5]"},
	{path: "model.api_key_env", about: "Name of the environment variable that holds the API key; never the key itself. Empty: requests carry no key.", initial: "OPENAI_API_KEY", form: variable},
	{path: "model.auth", about: "How a run is let in: with the key in the variable that api_key_env names, or, for OpenAI's own API alone, with keys that live for an hour and that the identity of the CI job is exchanged for (docs/how-to/keyless.md).", initial: "key", values: []string{"key", "oidc"}},
	{path: "model.identity", about: "As whom a run asks for keys, with model.auth: oidc. None of it is secret."},
	{path: "model.identity.provider_id", about: "The identity provider, as OpenAI shows it. Empty: OPENAI_IDENTITY_PROVIDER_ID.", form: oneLine},
	{path: "model.identity.service_account_id", about: "The service account that keys are of. Empty: OPENAI_SERVICE_ACCOUNT_ID.", form: oneLine},
	{path: "model.identity.token_file", about: "Absolute path of the file with the token, which no command may read. Empty: OPENAI_IDENTITY_TOKEN_FILE, else Actions are asked for one.", form: absoluteFile},
	{path: "model.base_url", about: "Where the API is. Empty: OPENAI_BASE_URL, else OpenAI's own. http is for this machine and its network alone.", form: webAddress},
	{path: "model.headers", about: "More headers for every request to the API. They are literal and end up in the transcript: a key belongs in the variable that api_key_env names.", example: "{X-Team: build}", names: headerName, form: headerValue},
	{path: "model.wire", about: "The API that is spoken: the Responses API, or Chat Completions, for endpoints that have nothing else.", initial: "responses", values: []string{"responses", "chat"}},
	{path: "model.chat", about: "In what the endpoint's Chat Completions differ from OpenAI's, with wire: chat (docs/reference/model.md#endpoints). Most of it a run finds out itself, by a request that is refused; agent-ci doctor --online does so before.", example: "[no_system, alternate]", values: chatQuirks},
	{path: "model.stream", about: "Whether answers are read as they are written. false is for endpoints that cannot; a whole answer may take 15 minutes.", initial: true},
	{path: "model.reasoning_effort", about: "How much the model thinks. Empty: nothing is sent, for models that don't reason.", initial: "medium", values: []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}},
	{path: "model.reasoning_summary", about: "Summary of the model's thoughts, for the transcript. Empty: none.", values: []string{"", "auto", "concise", "detailed"}},
	{path: "model.service_tier", about: "The provider's tier of processing. Empty: that of the project. After two refusals because there is no room at flex, or one because there is no such tier, the run goes on at the default tier.", values: []string{"", "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}},
	{path: "model.max_output_tokens", about: "Tokens that one answer may have, reasoning included. 0: the model's own limit.", span: &span{0, many}},
	{path: "model.context_window", about: "Tokens that fit into one request with its answer. 0: what the model's profile says, 128000 for a model without one. At 85 % the conversation is made shorter.", span: &span{0, many}},
	{path: "model.tools", about: "How the model gets tools: apply_patch freeform with a grammar, as a function, or as the tool that is built into the API, in which case commands run by the API's own shell tool too; code: all tools are called in scripts, which it writes; opencode: tools with the names and arguments that OpenCode gives them; aider-diff, aider-udiff, aider-whole: none in the request, the model writes edits as text in Aider's formats, and what it wants to read and run in fenced blocks; auto: what suits the model of freeform, function and code. Calls in the other forms of tools are answered too.", initial: "auto", values: slices.Concat([]string{"auto", "freeform", "function", "builtin", "code"}, dialect.Families(), []string{ToolsAiderDiff, ToolsAiderUdiff, ToolsAiderWhole})},
	{path: "model.outage", about: "What pauses and further attempts may take in the whole run.", initial: Duration(10 * time.Minute)},
	{path: "model.price", about: "What the model costs. Empty: the price of its profile, if one is known."},
	{path: "model.price.input", about: "US dollars for a million tokens that the model reads."},
	{path: "model.price.cached", about: "US dollars for a million of these that came from the provider's cache. 0: as input."},
	{path: "model.price.output", about: "US dollars for a million tokens that the model writes."},

	{path: "tools", about: "Which tools the model may call."},
	{path: "tools.allow", about: "Only these are offered. Empty: all that suit the model.", form: toolName},
	{path: "tools.deny", about: "These are neither offered nor answered, also when allow names them.", form: toolName},
	{path: "tools.hosted", about: "Tools that the API runs itself: web_search, file_search, code_interpreter, mcp (remote servers), image_generation. Each is a type, or a mapping as the API describes the tool; what is secret in it goes to the API only.", example: "[web_search, {type: file_search, vector_store_ids: [vs_1]}]", foreign: hosted},
	{path: "tools.dynamic", about: "Tools of the job's own: programs that run in the agent's sandbox.", example: "[{name: lookup, description: Looks a word up., input_schema: {type: object}, run: [./lookup.sh]}]", most: mostDynamicTools},
	{path: "tools.dynamic[].name", about: "What the model calls it by.", required: true, filled: true, form: dynamicName},
	{path: "tools.dynamic[].description", about: "What it does, for the model.", required: true, filled: true, form: notBlank},
	{path: "tools.dynamic[].input_schema", about: "JSON Schema of its arguments, an object.", required: true, foreign: inputSchema},
	{path: "tools.dynamic[].run", about: "What is run for each call: a script, or a program with its arguments as a list. It gets the arguments as JSON on standard input; what it prints is the result, text or a JSON list of input_text and input_image items. An exit status other than 0 is a failed call. A process that answers many calls, or has another network, is a server of mcp_servers. In a list ~/ at the start of a word and ${HOME} are the home folder of who starts agent-ci."},
	{path: "tools.dynamic[].timeout", about: "How long a call may take.", initial: Duration(5 * time.Minute)},
	{path: "tools.dynamic[].defer", about: "Whether it is found by searching only, and not told to the model from the start."},
	{path: "tools.js_repl", about: "Whether the model may run JavaScript in a process of Node that keeps what it defines (js_repl), in the agent's sandbox. It is offered where there is a node of version 18 or later, and the rules on commands let it run."},

	{path: "skills", about: "Skills of the repository that the model may load: folders with a SKILL.md."},
	{path: "skills.folders", about: "Folders of the base commit in which skills are looked for; of two with one name that of the earlier folder is taken. A list of one's own replaces the default; an empty one switches skills off. No change of these folders is published, as of policy.protect.", initial: []string{".agents/skills", ".claude/skills"}, form: skillFolder},

	{path: "git", about: "What git is allowed in the checkout."},
	{path: "git.filters", about: "Filters of the repository's own configuration (.git/config) that may run: in a sandbox, without the checkout, tokens and network. Others of it end the run before the first turn. Git LFS needs no entry, nor do filters of the user's configuration.", example: "[{name: nbstripout}]"},
	{path: "git.filters[].name", about: "NAME of filter.NAME in git's configuration.", required: true, filled: true, form: oneLine},
	{path: "git.filters[].reads", about: "Paths that the filter may read besides what is on its standard input, such as a key: written like those of policy.writable.", form: oneLine, example: "[.git/git-crypt]"},

	{path: "policy", about: "What commands and changes may do."},
	{path: "policy.sandbox", about: "What commands may change: nothing but their own temporary files, the workspace, or anything. With danger-full-access nothing confines them, and each run says so.", initial: "workspace-write", values: []string{"read-only", "workspace-write", "danger-full-access"}},
	{path: "policy.require", about: "The least confinement that the run accepts: landlock (Landlock and seccomp), namespaces (namespaces and seccomp) or full (all three). Empty: any of them.", values: []string{"", "landlock", "namespaces", "full"}},
	{path: "policy.network", about: "What commands can reach: nothing, a loopback of their own, all that the machine reaches, or, with that loopback, the hosts of a list by HTTP and HTTPS through a proxy: names, addresses, presets such as {preset: npm}, and hosts in private networks that are named as such. Without a network namespace loopback means none, and a list refuses to start, as it does with danger-full-access, where nothing is limited.", initial: Network{Mode: modeLoopback}, values: []string{"none", "loopback", "full"}},
	{path: "policy.writable", about: "More folders that commands may write: below the repository's root, below the user's folder (~/), or absolute.", form: oneLine, example: "[~/.gradle]"},
	{path: "policy.deny_read", about: "Paths that commands and tools may not read, besides credentials: written like those of writable. None may be tracked by git, which shows what it holds.", form: oneLine, example: "[secrets, /opt/licences]"},
	{path: "policy.protect", about: "Patterns of paths that the change set may not touch. A list of one's own replaces the default; .agents/**, .claude/**, .agent-ci/** and skills.folders stay protected under any list.", initial: []string{".github/**", "CODEOWNERS", ".agents/**", ".claude/**", ".agent-ci/**"}, form: pathPattern},
	{path: "policy.change", about: "What becomes of a change with something doubtful in it: it is not published (fail), it is with a warning that reviewers see (warn), or it is (allow)."},
	{path: "policy.change.protected", about: "Files that policy.protect names. drop: these changes are left out, with a warning, and the rest goes on.", initial: "fail", values: append(slices.Clone(treatments), "drop")},
	{path: "policy.change.submodules", about: "Submodules, new, gone or on another commit. One on a commit that was only made here is never part of the change.", initial: "fail", values: treatments},
	{path: "policy.change.nested_git", about: "Repositories made within the repository. What is in them is never part of the change.", initial: "fail", values: treatments},
	{path: "policy.change.symlinks_out", about: "Symbolic links that lead out of the repository.", initial: "fail", values: treatments},
	{path: "policy.change.symlinks", about: "Other symbolic links, new or changed.", initial: "warn", values: treatments},
	{path: "policy.change.executables", about: "Files that are new and executable, or become so.", initial: "warn", values: treatments},
	{path: "policy.change.lockfiles", about: "Files that pin the versions of dependencies, such as go.sum and package-lock.json.", initial: "allow", values: treatments},
	{path: "policy.rules", about: "More files of rules on which commands may run, beside .github/agent-ci.rules: paths below the repository's root, read from the base commit, or absolute paths of the operator's files outside of it.", form: rulesFile, example: "[.github/strict.rules]"},
	{path: "policy.env", about: "The environment of commands, which is an allow list."},
	{path: "policy.env.pass", about: "Names of variables that commands see with the value that agent-ci has. Tokens and the API key can't be passed.", form: variable},
	{path: "policy.env.set", about: "Variables that commands see with the value given here.", example: "{CGO_ENABLED: 0}", names: variable, form: variableValue},

	{path: "policy.secrets", about: "Credentials that commands use and never have: they see a placeholder, and the proxy puts the value in its place in requests to the hosts that are listed. They take network namespaces, as a list of hosts does.", example: "[{name: NPM_TOKEN, preset: npm, hosts: [npm.example.com]}]", most: mostSecrets},
	{path: "policy.secrets[].name", about: "The variable in which commands find the placeholder.", required: true, filled: true, form: variable},
	{path: "policy.secrets[].from", about: "Where the value is: a variable of agent-ci's own environment, or, with a / in it, a file with one line, which is kept from commands. Empty: the variable that name names.", form: secretFrom},
	{path: "policy.secrets[].preset", about: "The client whose files get the placeholder, and which settles where the value stands in a request: npm, pypi, goproxy (netrc), git, cargo, maven. Empty: none.", values: []string{"", PresetNPM, PresetPyPI, PresetGoProxy, PresetGit, PresetCargo, PresetMaven}},
	{path: "policy.secrets[].hosts", about: "What the secret is for, by https: hosts, with another port than 443 where one is given, and below the beginning of a path where one is given. This opens them for the methods of the secret.", required: true, form: secretHost, example: "[npm.example.com, 'git.example.com:8443/team']", most: mostScopes},
	{path: "policy.secrets[].private", about: "Whether the hosts may have private addresses, as with {host, private: true} of a list."},
	{path: "policy.secrets[].ca", about: "A file with who vouches for the hosts besides the machine's authorities, as with {host, ca} of a list: below the repository's root, read from the base commit, or absolute. Empty: none.", form: rulesFile},
	{path: "policy.secrets[].header", about: "The header of requests in which the value stands: whole, or after a scheme such as Bearer, and in Authorization also as user or password of Basic.", initial: headerAuthorization, form: headerName},
	{path: "policy.secrets[].parameter", about: "A parameter of the query in which the value stands, in the place of header.", form: parameterName},
	{path: "policy.secrets[].user", about: "The user beside the value, of presets pypi (else __token__), goproxy, maven (else agent-ci) and git (else x-access-token).", form: basicUser},
	{path: "policy.secrets[].methods", about: "The methods of requests that it goes out with. With preset: git those of a fetch, and none may be given.", initial: []string{"GET", "HEAD"}, form: method},
	{path: "policy.secrets[].commands", about: "Which commands have it: those of the agent, of setup, of verify.", initial: []string{CommandsSetup}, form: secretCommands},
	{path: "policy.secrets[].server", about: "The id of the server in Maven's settings, by which pom.xml names the repository; of preset maven, which needs it.", form: serverID},

	{path: "limits", about: "What ends a run that goes on too long, as budget_exceeded."},
	{path: "limits.turns", about: "Requests to the model.", initial: 200, span: &span{1, many}},
	{path: "limits.tool_calls", about: "Tool calls.", initial: 500, span: &span{1, many}},
	{path: "limits.tokens", about: "Tokens, read and written, of all requests together.", initial: int64(4_000_000), span: &span{1, many}},
	{path: "limits.cost_usd", about: "US dollars for the model. 0 is no limit. It takes a price: that of the model's profile or model.price. Without one the default does not hold, of which the run warns, and another limit than that is refused.", initial: DefaultCostUSD},
	{path: "limits.time", about: "Wall-clock time after which the agent stops. Checks of its work still have their own timeouts.", initial: Duration(45 * time.Minute)},
	{path: "limits.diff_lines", about: "Lines added and removed by the change set.", initial: 5000, span: &span{1, many}},
	{path: "limits.diff_files", about: "Files that the change set touches.", initial: 100, span: &span{1, many}},
	{path: "limits.file_size", about: "Bytes that a file of the change may have, text or binary. What only moves is not counted. A Git LFS file has the size of its content.", initial: int64(5_000_000), span: &span{1, many}},
	{path: "limits.on_budget", about: "What becomes of the work when a limit ends the run: kept in the run directory, or published as a draft.", initial: "keep", values: []string{"keep", "draft"}},

	{path: "verify", about: "Commands that judge the change set, outside the model.", example: "[{name: tests, run: go test ./..., timeout: 10m, must: pass}]"},
	{path: "verify[].name", about: "How the check is called; no two alike. Empty: the command itself.", form: oneLine},
	{path: "verify[].run", about: "The command, for bash with -e and pipefail: a pipe fails if any command of it does. Exit status 0 is green.", required: true, filled: true, form: notBlank},
	{path: "verify[].timeout", about: "How long it may take.", initial: Duration(10 * time.Minute)},
	{path: "verify[].must", about: "pass: green after the change. no_worse: red is accepted where it was red before, unless it is worse now (docs/how-to/checks.md).", initial: "pass", values: []string{"pass", "no_worse"}},
	{path: "verify[].rerun", about: "How often it runs again on the same tree while it is red; 0 for never. Green after red is flaky. A timeout counts at once.", initial: 1, span: &span{0, 5}},
	{path: "verify[].flaky", about: "What flaky counts as, before the change and after it: red (reject) or green (accept).", initial: "reject", values: []string{"reject", "accept"}},
	{path: "verify[].when", about: "Patterns of paths: the check runs where the change touches a path that fits one of them, and counts as passed elsewhere. Empty: it always runs.", form: pathPattern, example: "[docs/**, '*.md']"},
	{path: "verify[].proves", about: "Whether it also runs with only the tests of the change laid on the base, where they have to fail (docs/how-to/checks.md#red-proof). true: a class of each test file is shown. required: the pull request is a draft as well where one is not proven.", initial: "false", values: []string{"false", "true", ProvesRequired}, scalars: true},
	{path: "verify[].junit", about: "Files of JUnit's XML that the command writes, below the folder that it runs in, such as build/test-results/*.xml. They name the tests that fail; the exit status alone decides. Empty: what the output says is read.", form: pathPattern},
	{path: "verify_attempts", about: "How often a red check goes back to the agent. With 0 nothing does: no change that is refused, and no test that proves nothing.", initial: 2, span: &span{0, 10}},
	{path: "verify_tests", about: "Patterns of paths: which files of a change are tests, or data of tests. A list of one's own replaces the default.", initial: testPatterns, form: pathPattern},
	{path: "on_verify_failed", about: "What is published when a check stays red: a draft pull request or nothing.", initial: "draft", values: []string{"draft", "none"}},

	{path: "trigger", about: "Which events ask for work, where the task comes from the event."},
	{path: "trigger.labels", about: "Labels that ask for work on an issue when somebody adds one of them.", initial: []string{"agent-ci"}, form: label},
	{path: "trigger.assignees", about: "Accounts that ask for work on an issue when somebody assigns it to one of them.", form: login},
	{path: "trigger.command", about: "How a comment, a review or a review comment begins that asks for work. Empty: none does.", initial: "/agent-ci", form: commandWord},

	{path: "trust", about: "To whom the run listens."},
	{path: "trust.roles", about: "Roles in the repository, asked from the API: who has one of them, or a greater one, may ask for work, and their comments are read. On a public repository everybody has read.", initial: []string{"write"}, form: role},
	{path: "trust.bots", about: "Logins of bots that may ask for work and whose comments are read, such as renovate[bot]. No other bot is listened to, whatever its role.", form: login},
	{path: "trust.forks", about: "Whether events of pull requests from forks may start a job that has a task of its own. Who caused the event still needs a role of trust.roles, and the run works on the base alone: nothing of the fork's branch is read, run or gone on with."},
	{path: "trust.comments", about: "Whose comments the model sees: of those that trust.roles and trust.bots name, of everybody, of nobody.", initial: "trusted", values: []string{"trusted", "all", "none"}},

	{path: "publish", about: "As what the work is published, where it is not left here."},
	{path: "publish.as", about: "pull_request: a change, as a pull request. The others change no file and say something on the issue or pull request that the event or task.issue names: a review of a pull request with findings on lines of its diff; some of publish.labels, which are added; one comment, which later runs of the task bring up to date.", initial: "pull_request", values: []string{"pull_request", "review", "labels", "comment"}},
	{path: "publish.labels", about: "The labels that publish.as: labels chooses from: no other is ever added. GitHub creates those that the repository does not have.", form: label, example: "[bug, question]"},

	{path: "repair", about: "What is done about red checks of a run's own pull request, where an event of workflow_run or check_suite, or agent-ci repair, asks for it."},
	{path: "repair.attempts", about: "How often agents may try, until a person pushes to the branch or asks for more. 0: never.", initial: 3, span: &span{0, 10}},
	{path: "repair.cost_usd", about: "US dollars for the model, of all attempts together. 0 is no limit. An attempt has what is left, and at most limits.cost_usd. It holds where the price of the model is known.", initial: 2 * DefaultCostUSD},
	{path: "repair.stop_label", about: "Label of a pull request with which it is left alone.", initial: "agent-ci-hands-off", form: label},

	{path: "pull_request", about: "How a change is presented."},
	{path: "pull_request.branch", about: "Branch that the change goes to. Empty: agent-ci/ and the task key.", form: branchForm},
	{path: "pull_request.title", about: "Title. Empty: made from the task.", form: title},
	{path: "pull_request.draft", about: "Whether it is a draft even when every check is green."},
	{path: "pull_request.labels", about: "Labels to add. GitHub creates those that the repository does not have.", form: label},
	{path: "pull_request.reviewers", about: "Logins, and teams as ORGANISATION/TEAM, to ask for a review, once, when it is opened.", form: reviewer, example: "[octocat, octo-org/core]"},
	{path: "pull_request.assignees", about: "Logins to assign.", form: login},
	{path: "pull_request.transcript", about: "How much of the transcript the pull request shows: each call folded with arguments and output, each call as a line, nothing.", initial: "full", values: []string{"full", "digest", "none"}},
	{path: "pull_request.commit", about: "How the commit is made."},
	{path: "pull_request.commit.sign", about: "How the commit is signed. github: GitHub's API makes the commit, and signs it where the token is that of an app or of GitHub Actions. ssh: with an SSH key. Empty: not at all.", values: []string{"", "github", "ssh"}},
	{path: "pull_request.commit.key_env", about: "Name of the environment variable that holds the private SSH key, or the absolute path of its file; never the key itself. The key has no passphrase.", form: variable},
	{path: "pull_request.commit.co_author", about: "Whether the commit names who asked for the work, else who wrote the issue, as co-author (Co-authored-by), under the address that GitHub gives every account.", initial: true},

	{path: "mcp_servers", about: "MCP servers whose tools the model may call, by names. All start before the first request to the model; their tools stay as they are for the run.", example: "{docs: {command: docs-server, tools: [search]}}", names: serverName, most: mostMCPServers},
	{path: "mcp_servers.*.command", about: "The program of a server that is reached by its standard streams. It runs in a sandbox of its own: as long as the run with workspace: none, else as long as an attempt of the agent. A server has command or url. In command and args ~/ at the start of a word and ${HOME} are the home folder of who starts agent-ci; no shell reads them.", form: oneLine},
	{path: "mcp_servers.*.args", about: "Its arguments.", form: argument, example: "[--stdio]"},
	{path: "mcp_servers.*.cwd", about: "The folder that it is started in, below the root of what the agent works in; of workspace: read and write. Without it the server is started in a fresh tree of the base commit, and finds what the agent works in by $AGENT_CI_WORKSPACE. Does not go with env.pass.", form: folder},
	{path: "mcp_servers.*.env", about: "The variables that it sees besides the few that programs need to run."},
	{path: "mcp_servers.*.env.pass", about: "Names of variables that it sees with the value that agent-ci has, secrets among them; no other command sees what is given to a server, and nothing shows it.", form: variable},
	{path: "mcp_servers.*.env.set", about: "Variables that it sees with the value given here.", example: "{LOG_LEVEL: warn}", names: variable, form: variableValue},
	{path: "mcp_servers.*.url", about: "The address of a server that is reached by streamable HTTP. Its host is thereby allowed, also at a private or loopback address; http is for those alone, and for names without a dot or in .internal, .local, .home.arpa, .localhost and .test. No redirect to another host is followed.", form: serverURL},
	{path: "mcp_servers.*.headers", about: "More headers for every request to url. They are literal and end up in the transcript.", example: "{X-Team: build}", names: headerName, form: headerValue},
	{path: "mcp_servers.*.bearer_token_env", about: "Name of the variable that holds the token that requests to url carry; never the token itself.", form: variable},
	{path: "mcp_servers.*.tools", about: "The tools of the server that the model may call, by the server's own names. It is required; [\"*\"] are all that the server has.", required: true, filled: true, form: oneLine, example: "[search, fetch]"},
	{path: "mcp_servers.*.deny", about: "Tools of the server that the model may not call, beside tools: [\"*\"].", form: oneLine},
	{path: "mcp_servers.*.required", about: "Whether the run ends, before anything is paid, where the server does not come or lacks one of its tools. Else a warning says so.", initial: true},
	{path: "mcp_servers.*.start_timeout", about: "How long the server may take until its tools are known. The download of its package counts.", initial: Duration(time.Minute)},
	{path: "mcp_servers.*.tool_timeout", about: "How long one call may take.", initial: Duration(2 * time.Minute)},
	{path: "mcp_servers.*.network", about: "What a server that is started here can reach, written as policy.network is.", initial: Network{Mode: modeLoopback}, values: []string{"none", "loopback", "full"}},
	{path: "mcp_servers.*.workspace", about: "What a server that is started here sees of what the agent works in: nothing, all of it to read, or to write too. What it writes counts as the agent's.", initial: "none", values: []string{"none", "read", "write"}},
	{path: "mcp_servers.*.defer", about: "Whether its tools are found by searching only, and not told to the model from the start."},

	{path: "hooks", about: "Programs that are asked at points of the run, by names, and can refuse what comes. Anything but a clean answer refuses too.", example: "{guard: {on: PreToolUse, run: [.github/guard.py]}}", names: serverName, most: mostHooks},
	{path: "hooks.*.on", about: "When it is asked: a point that Claude Code has, or one of agent-ci's own.", required: true, values: hookEvents},
	{path: "hooks.*.run", about: "The program and its arguments, without a shell. A program that is named by a relative path, and the files beside it, are those of the base commit, which is where it is started. ~/ at the start of a word and ${HOME} are the home folder of who starts agent-ci.", required: true, form: argument, example: "[.github/guard.py, --strict]"},
	{path: "hooks.*.tools", about: "Matchers of tools, as Claude Code has them: names with | between them, or a regular expression. It is asked of these tools alone. Empty: of all.", form: oneLine},
	{path: "hooks.*.argv", about: "The beginning of a command, word by word: it is asked of commands that begin so, alone. Empty: of all.", form: argument, example: "[git, push]"},
	{path: "hooks.*.timeout", about: "How long it may take.", initial: Duration(10 * time.Second)},
	{path: "hooks.*.on_error", about: "What becomes of what it was asked where it does not answer cleanly: refused, or gone on with after a warning.", initial: "fail", values: []string{"fail", "continue"}},
	{path: "hooks.*.must_fire", about: "Whether a run in which it never gave a clean answer is a failure."},
	{path: "hooks.*.trusted", about: "operator: it runs outside of any sandbox, with the rights of who starts agent-ci. Only the operator's file may say so.", values: []string{"", "operator"}},

	{path: "memory", about: "Lessons of earlier runs, in .agent-ci/lessons.yml of the base commit. The model is told of them where the file is there."},
	{path: "memory.propose", about: "Whether the model may propose others, for people to review: not at all (off), as a part of the change (change), or in a pull request of their own (pull_request).", initial: "off", values: []string{"off", ProposeInChange, ProposeAlone}},
	{path: "agents", about: "Other agents that the agent may start, to work beside it (docs/how-to/agents.md)."},
	{path: "agents.enabled", about: "Whether it may."},
	{path: "agents.most", about: "How many there may be at once, those that have ended and are still open included.", initial: 4, span: &span{1, 16}},
	{path: "agents.depth", about: "How deep they may start others: with 1, only the agent of the run does.", initial: 1, span: &span{1, 4}},
	{path: "agents.wait", about: "How long the run waits for those that still work when the agent has ended. Then they are ended.", initial: Duration(5 * time.Minute)},
	{path: "agents.roles", about: "Kinds of agents, by names, besides explorer, which only reads, and worker, which changes a copy. Under one of these names it changes that role.", example: "{tester: {instructions: You write tests., writes: own}}", names: serverName, most: mostRoles},
	{path: "agents.roles.*.instructions", about: "What agents of the role are told before their task. Empty: those of the built-in role.", form: notBlank},
	{path: "agents.roles.*.model", about: "Their model, at the same API, as its profile has it. Empty: that of the one that starts them.", form: oneLine},
	{path: "agents.roles.*.effort", about: "How much it thinks. Empty: as the model of the one that starts them.", values: []string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}},
	{path: "agents.roles.*.tools", about: "The tools that they may call, of those of agent-ci itself that the one that starts them has. Empty: all.", form: toolName, example: "[read_file, grep_files]"},
	{path: "agents.roles.*.writes", about: "What they may change: nothing, a copy of their own, whose change is merged, or what the one that starts them works in, in turns with it. Empty: that of the built-in role, else none.", values: []string{"", "none", "own", "shared"}},
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
