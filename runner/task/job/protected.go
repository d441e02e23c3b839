package job

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// protection is a pattern of paths. No change may touch them unless the job opens the pattern.
type protection struct {
	Pattern string
	Why     string // the end of a sentence
	Closed  bool   // no job can open it
}

// protections lists the paths protected by default. A pattern without a slash fits files of that
// name in every folder.
var protections = []protection{
	{Pattern: ".github/**", Why: "its workflows, actions and rules run with the rights of the repository"},
	{Pattern: ".gitea/**", Why: "its workflows run with the rights of the repository"},
	{Pattern: ".forgejo/**", Why: "its workflows run with the rights of the repository"},
	{Pattern: ".gitlab-ci.yml", Why: "its jobs run with the rights of the repository"},
	{Pattern: "CODEOWNERS", Why: "it decides who must review a change"},
	{Pattern: "**/.agents/**", Why: "agents load skills and rules from it"},
	{Pattern: "**/.claude/**", Why: "agents load skills and settings from it, and run the hooks in these settings"},
	{Pattern: ".agent-ci/**", Why: "later runs work by it", Closed: true},
	{Pattern: "AGENTS.md", Why: "agents follow it as instructions"},
	{Pattern: "CLAUDE.md", Why: "agents follow it as instructions"},
	{Pattern: "**/.codex/**", Why: "it has settings of agents, which name commands and servers to start"},
	{Pattern: "**/.cursor/**", Why: "it has rules for agents, and servers that the editor starts"},
	{Pattern: "**/.gemini/**", Why: "it has settings of agents, which name commands and servers to start"},
	{Pattern: ".mcp.json", Why: "agents start the servers in it"},
	{Pattern: "**/.vscode/{tasks,settings,launch}.json", Why: "the editor runs its tasks and programs when somebody opens the folder"},
	{Pattern: "**/.devcontainer/**", Why: "its commands run when somebody opens the folder in a container"},
	{Pattern: ".devcontainer.json", Why: "its commands run when somebody opens the folder in a container"},
	{Pattern: "**/.husky/**", Why: "git runs its hooks on the machine of everybody who commits"},
	{Pattern: ".pre-commit-config.yaml", Why: "git runs its hooks on the machine of everybody who commits"},
	{Pattern: ".envrc", Why: "direnv runs it when somebody enters the folder"},
	{Pattern: ".npmrc", Why: "it decides from where packages come, and which program runs scripts"},
	{Pattern: ".yarnrc*", Why: "it decides from where packages come, and names programs and plugins to run"},
	{Pattern: "mise.toml", Why: "mise runs its hooks and tasks when somebody enters the folder"},
	{Pattern: ".mise.toml", Why: "mise runs its hooks and tasks when somebody enters the folder"},
}

// protectedByDefault returns the patterns of protections.
func protectedByDefault() (all []string) {
	for _, p := range protections {
		all = append(all, p.Pattern)
	}
	return all
}

// openPrefix is the prefix of policy.protect entries that open a default pattern.
const openPrefix = "!"

// protectByDefault sets policy.protect to the full list: the default patterns without the opened
// ones, the folders of skills, and the job's own patterns.
func (d *checks) protectByDefault() {
	protect, open := protectedByDefault(), map[string]bool{}
	add := func(pattern string) {
		if !slices.Contains(protect, pattern) {
			protect = append(protect, pattern)
		}
	}
	for i, entry := range d.job.Policy.Protect {
		pattern, is := strings.CutPrefix(entry, openPrefix)
		if !is {
			add(entry)
			continue
		}
		d.WrongIf(openingMistake(pattern) != "", config.At("policy.protect", i), openingMistake(pattern))
		open[pattern] = true
	}
	protect = slices.DeleteFunc(protect, func(pattern string) bool { return open[pattern] })
	for _, folder := range d.job.Skills.Folders { // even if a job opens a pattern around it
		isIn := func(pattern string) bool {
			around, whole := strings.CutSuffix(strings.TrimPrefix(pattern, "**/"), "**")
			return whole && strings.HasPrefix(folder+"/", around)
		}
		if !slices.ContainsFunc(protect, isIn) {
			add(literal.Replace(folder) + "/**")
		}
	}
	d.job.Policy.Protect = protect
}

// openingMistake returns the reason a job cannot open a pattern, or "".
func openingMistake(pattern string) string {
	i := slices.IndexFunc(protections, func(p protection) bool { return p.Pattern == pattern })
	switch {
	case i < 0:
		return "opens " + clip.Bytes(pattern, 80) + ", which is not protected by default; name one of " + strings.Join(protectedByDefault(), ", ")
	case protections[i].Closed:
		return "opens " + pattern + ", which no job can open: " + protections[i].Why
	}
	return ""
}

// literal escapes a path for use in a pattern.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)
