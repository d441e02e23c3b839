package job

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
)

// TestDefaultProtectionsAreDocumented compares the table of the policy page with Protections; with -update it
// rewrites the table.
func TestDefaultProtectionsAreDocumented(t *testing.T) {
	const (
		page  = "../../../docs/reference/policy.md"
		begin = "<!-- The table below is written by go test ./runner/task/job -update. -->\n"
		end   = "<!-- End of the table. -->\n"
	)
	document := must.Get(os.ReadFile(page))(t)
	before, rest, begun := strings.Cut(string(document), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s lacks the lines between which the table stands", page)
	}
	var table strings.Builder
	table.WriteString("\n| pattern | why |\n|---|---|\n")
	for _, p := range protections {
		closed := ""
		if p.Unopenable {
			closed = "; no job can open it"
		}
		fmt.Fprintf(&table, "| `%s` | %s%s |\n", p.Pattern, p.Reason, closed)
	}
	golden.Compare(t, page, before+begin+table.String()+"\n"+end+after)
}

func TestProtectsDefaultsUnlessOpened(t *testing.T) {
	all := []string{
		".github/workflows/ci.yml", ".gitea/workflows/ci.yml", ".forgejo/x", ".gitlab-ci.yml", "docs/CODEOWNERS", ".agents/skills/a/SKILL.md", ".claude/settings.json", "web/.claude/settings.json",
		".agent-ci/lessons.md", "AGENTS.md", "sub/agents.md", "CLAUDE.md", ".codex/config.toml", "web/.cursor/rules/a.mdc", ".gemini/settings.json", "web/.mcp.json",
		".vscode/tasks.json", "web/.vscode/settings.json", ".vscode/launch.json", ".devcontainer/devcontainer.json", ".devcontainer.json", ".husky/pre-commit",
		".pre-commit-config.yaml", ".envrc", "web/.npmrc", ".yarnrc", ".yarnrc.yml", "mise.toml", ".mise.toml",
	}
	free := []string{".vscode/extensions.json", "src/agents.go", ".githubber/x", "docs/mise.md", "npmrc", "vscode/tasks.json"}
	fitting := func(j *Job, paths []string) (fit []string) {
		for _, path := range paths {
			is := must.Get(policy.Protected(j.Policy.Protect, path))(t)
			if is {
				fit = append(fit, path)
			}
		}
		return fit
	}
	for given, open := range map[string][]string{
		"":                                 nil,
		"policy: {protect: []}\n":          nil,
		"policy: {protect: [deploy/**]}\n": nil,
		"policy: {protect: ['!AGENTS.md', deploy/**]}\n":                    {"AGENTS.md", "sub/agents.md"},
		"policy: {protect: ['!.github/**', '!.yarnrc*']}\n":                 {".github/workflows/ci.yml", ".yarnrc", ".yarnrc.yml"},
		"policy: {protect: ['!**/.vscode/{tasks,settings,launch}.json']}\n": {".vscode/tasks.json", "web/.vscode/settings.json", ".vscode/launch.json"},
	} {
		j := mustLoad(t, jobFile(start+given))
		want := slices.DeleteFunc(slices.Clone(all), func(path string) bool { return slices.Contains(open, path) })
		must.Same(t, want, fitting(j, all), given, "protects")
		must.None(t, fitting(j, free), given, "protects")
		deployed := fitting(j, []string{"deploy/x"})
		must.Same(t, strings.Contains(given, "deploy"), deployed != nil, given, "protects of deploy", deployed)
		for _, entry := range j.Policy.Protect {
			must.Same(t, false, strings.HasPrefix(entry, "!"), given, "the whole list has", entry)
		}
	}
}

func TestRefusesInvalidOpenings(t *testing.T) {
	for entry, want := range map[string]string{
		"!.agent-ci/**": "policy.protect[0]: opens .agent-ci/**, which no job can open: later runs work by it",
		"!deploy/**":    "policy.protect[0]: opens deploy/**, which is not protected by default; name one of .github/**",
		"!agents.md":    "policy.protect[0]: opens agents.md, which is not protected by default; name one of .github/**",
		"!":             "policy.protect[0]: ",
		"!!AGENTS.md":   "policy.protect[0]: must be a pattern of paths",
	} {
		wantProblem(t, fmt.Sprintf("policy: {protect: [%q]}", entry), want)
	}
}
