package job

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// protection is a pattern of paths. No change may touch them unless the job opens the pattern.
type protection struct {
	Pattern    string
	Reason     string // the end of a sentence
	Unopenable bool   // no job can open it
}

// protections lists the paths protected by default. A pattern without a slash fits in every folder.
var protections = []protection{
	{Pattern: ".github/**", Reason: "its workflows, actions and rules run with the rights of the repository"},
	{Pattern: ".gitea/**", Reason: "its workflows run with the rights of the repository"},
	{Pattern: ".forgejo/**", Reason: "its workflows run with the rights of the repository"},
	{Pattern: ".gitlab-ci.yml", Reason: "its jobs run with the rights of the repository"},
	{Pattern: "CODEOWNERS", Reason: "it decides who must review a change"},
	{Pattern: "**/.agents/**", Reason: "agents load skills and rules from it"},
	{Pattern: "**/.claude/**", Reason: "agents load skills and settings from it, and run the hooks in these settings"},
	{Pattern: ".agent-ci/**", Reason: "later runs work by it", Unopenable: true},
	{Pattern: "AGENTS.md", Reason: "agents follow it as instructions"},
	{Pattern: "CLAUDE.md", Reason: "agents follow it as instructions"},
	{Pattern: "**/.codex/**", Reason: "it has settings of agents, which name commands and servers to start"},
	{Pattern: "**/.cursor/**", Reason: "it has rules for agents, and servers that the editor starts"},
	{Pattern: "**/.gemini/**", Reason: "it has settings of agents, which name commands and servers to start"},
	{Pattern: ".mcp.json", Reason: "agents start the servers in it"},
	{Pattern: "**/.vscode/{tasks,settings,launch}.json", Reason: "the editor runs its tasks and programs when somebody opens the folder"},
	{Pattern: "**/.devcontainer/**", Reason: "its commands run when somebody opens the folder in a container"},
	{Pattern: ".devcontainer.json", Reason: "its commands run when somebody opens the folder in a container"},
	{Pattern: "**/.husky/**", Reason: "git runs its hooks on the machine of everybody who commits"},
	{Pattern: ".pre-commit-config.yaml", Reason: "git runs its hooks on the machine of everybody who commits"},
	{Pattern: ".envrc", Reason: "direnv runs it when somebody enters the folder"},
	{Pattern: ".npmrc", Reason: "it decides from where packages come, and which program runs scripts"},
	{Pattern: ".yarnrc*", Reason: "it decides from where packages come, and names programs and plugins to run"},
	{Pattern: "mise.toml", Reason: "mise runs its hooks and tasks when somebody enters the folder"},
	{Pattern: ".mise.toml", Reason: "mise runs its hooks and tasks when somebody enters the folder"},
}

// defaultProtectedPatterns returns the patterns of all protections.
func defaultProtectedPatterns() (all []string) {
	for _, p := range protections {
		all = append(all, p.Pattern)
	}
	return all
}

// openPrefix is the prefix of policy.protect entries that open a default pattern.
const openPrefix = "!"

// completeProtectedPatterns sets policy.protect to the full list: the default patterns without the opened
// ones, the folders of skills, and the job's own patterns.
func (d *validator) completeProtectedPatterns() {
	protect := defaultProtectedPatterns()
	opened := map[string]bool{}
	add := func(pattern string) {
		if !slices.Contains(protect, pattern) {
			protect = append(protect, pattern)
		}
	}
	for i, entry := range d.job.Policy.Protect {
		pattern, opens := strings.CutPrefix(entry, openPrefix)
		if !opens {
			add(entry)
			continue
		}
		mistake := whyNotOpenable(pattern)
		d.ReportIf(mistake != "", config.JoinPath("policy.protect", i), mistake)
		opened[pattern] = true
	}
	protect = slices.DeleteFunc(protect, func(pattern string) bool { return opened[pattern] })
	for _, folder := range d.job.Skills.Folders { // even if a job opens a pattern around it
		if !slices.ContainsFunc(protect, func(pattern string) bool { return protectsFolder(pattern, folder) }) {
			add(patternEscaper.Replace(folder) + "/**")
		}
	}
	d.job.Policy.Protect = protect
}

// protectsFolder reports whether a pattern such as **/.agents/** protects all files of a folder.
func protectsFolder(pattern, folder string) bool {
	parent, isWholeFolder := strings.CutSuffix(strings.TrimPrefix(pattern, "**/"), "**")
	return isWholeFolder && strings.HasPrefix(folder+"/", parent)
}

// whyNotOpenable returns the reason a job cannot open a pattern, or "".
func whyNotOpenable(pattern string) string {
	i := slices.IndexFunc(protections, func(p protection) bool { return p.Pattern == pattern })
	switch {
	case i < 0:
		return "opens " + clip.Bytes(pattern, 80) + ", which is not protected by default; name one of " + strings.Join(defaultProtectedPatterns(), ", ")
	case protections[i].Unopenable:
		return "opens " + pattern + ", which no job can open: " + protections[i].Reason
	}
	return ""
}

// patternEscaper escapes a path for use in a pattern.
var patternEscaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)
