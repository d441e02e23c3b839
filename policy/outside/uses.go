package outside

import "slices"

// Use is one reason to start a program outside of any sandbox.
type Use struct {
	Name    string
	program string // what is started, and who chooses it
	// commands lists the permitted subcommands of git. Nil means another program, or many
	// subcommands. `git status` and similar ones are never permitted: they start programs from a
	// submodule's configuration.
	commands []string
	folder   string // working directory: Root, or a description of the caller's folder
	// taken lists variables passed from agent-ci's environment, set those set by agent-ci. A final
	// asterisk matches any ending.
	taken, set []string
	words      string // the variables in words, for the table; "" means none
	starts     string // which programs it starts in turn
}

// Root is a folder where a program finds no repository and no other program.
const Root = "/"

// Takes reports whether the program gets a variable of agent-ci's own environment.
func (u *Use) Takes(name string) bool {
	return slices.ContainsFunc(u.taken, func(listed string) bool { return matchesListed(name, listed) })
}

var (
	// Stage is agent-ci as the first process of a sandbox, which sets up the sandbox.
	Stage = &Use{
		Name: "the process inside a sandbox", program: "agent-ci itself, by `/proc/self/exe`", folder: Root,
		set: []string{"GOMAXPROCS"}, words: "`GOMAXPROCS`",
		starts: "commands, in the sandbox that it makes first",
	}
	// Unconfined starts the commands of a job without a sandbox.
	Unconfined = &Use{
		Name:    "whatever a run starts under `policy.sandbox: danger-full-access`",
		program: "model, job or base commit, by the job's rules for commands",
		folder:  "the one that is asked for, else the checkout",
		taken:   []string{"*"}, words: "that of [commands](../reference/policy.md#secrets)",
		starts: "anything, with all rights of the user",
	}
	// Hook is a hook of the operator's file.
	Hook = &Use{
		Name:    "a hook with `trusted: operator`",
		program: "the operator's file; looked for neither in the checkout nor in what commands can write",
		folder:  "a fresh tree of the base commit, which commands can't write",
		taken:   []string{"*"}, words: "facts of machine and workflow: no token, nothing by which an interpreter finds code ([hooks.md](../reference/hooks.md#where-they-run))",
		starts: "anything, with all rights of the user",
	}
	// GitConfig reads the git configuration of user, machine and checkout.
	GitConfig = &Use{
		Name: "git on a checkout", program: gitOfUser, folder: "the checkout", commands: []string{"config", "remote"},
		taken: append(slices.Clone(toolVariables), "GIT_CONFIG*"), set: append([]string{"GIT_TRACE2", "GIT_TRACE2_BRIEF"}, quietVariables...),
		words:  "the tools' variables and `GIT_CONFIG*`; git's are set",
		starts: "nothing",
	}
	// GitPrivate is git with a private git folder: it does not use the repository's configuration and
	// hooks.
	GitPrivate = &Use{
		Name: "git with a private git folder", program: gitOfUser,
		commands: []string{"diff-tree", "apply", "grep", "read-tree", "write-tree", "merge-tree", "update-index", "checkout-index", "check-attr"},
		folder:   "the checkout, a fresh tree, or an empty folder of the run",
		taken:    toolVariables,
		set:      append([]string{"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_ALTERNATE_OBJECT_DIRECTORIES"}, quietVariables...),
		words:    "the tools' variables; git's are set, and no configuration is read but its own",
		starts:   "nothing: no filter, no hook, no fsmonitor, nothing in a submodule",
	}
	// GitRemote runs git with other repositories and makes checkouts of them for campaigns.
	GitRemote = &Use{
		Name: "git on other repositories: `ls-remote`, `clone`, `fetch`, `push`, before a clone `config`, and for campaigns `init`, `reset`", program: gitOfUser, folder: Root,
		taken: remoteVariables,
		set: []string{
			"LC_ALL", "GIT_TERMINAL_PROMPT", "GIT_ASKPASS", "GIT_NO_REPLACE_OBJECTS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*",
			"GIT_DIR", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		},
		words:  "the remotes' variables, no token: that comes through a pipe, for one host; git's are set, and its folder, if any, is private",
		starts: "`sh`, which reads that pipe; without a token, credential helpers of the user's configuration; for a repository on this machine that commands can't write, its hooks, as every push does; no filter, no hook of another repository",
	}
	// SSHConfig asks ssh for the host behind an alias.
	SSHConfig = &Use{
		Name: "`ssh -G`, for an origin that names no host of the forge", program: "ssh, found as git is", folder: Root,
		taken: []string{"PATH", "HOME"}, words: "`PATH` and `HOME`",
		starts: "what `Match exec` in the user's `.ssh/config` names; it connects to nothing",
	}
	// GitVersion is git asked for its version.
	GitVersion = &Use{
		Name: "`git --version`, before a clone, for `agent-ci doctor`, and if git cannot read the configuration", program: gitOfUser, folder: Root, starts: "nothing",
	}
	// Run is a run of a campaign.
	Run = &Use{
		Name: "a run of a campaign on this machine", program: "agent-ci itself, by its path", folder: "that of the campaign, in the ledger's",
		taken: []string{"*"}, words: "agent-ci's own, without what is of one step of a workflow",
		starts: "what this list has",
	}
)

const gitOfUser = "git, from the first absolute folder of the user's `PATH` that has one outside of the checkout"

// toolVariables lists variables that git needs. It excludes tokens, keys, and paths of other
// repositories.
var toolVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SYSTEMROOT",
}

// quietVariables keep git from asking, fetching and writing, and name its folders.
var quietVariables = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_NO_REPLACE_OBJECTS", "GIT_NO_LAZY_FETCH",
	"GIT_LITERAL_PATHSPECS", "LC_ALL", "GIT_PAGER", "GIT_INDEX_FILE",
}

// remoteVariables lists variables that git needs to reach other repositories.
var remoteVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME",
	"GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
	"http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy",
}

// Uses returns all uses, in the order of the table.
func Uses() []*Use {
	return []*Use{GitConfig, GitPrivate, GitRemote, SSHConfig, GitVersion, Hook, Unconfined, Run, Stage}
}
