package main_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// gapsPage is the one page that says what agent-ci does not have.
const gapsPage = "docs/internals/gaps.md"

// gaps are the rows of that page. Each returns the place where the thing exists by now; "" as long as it
// is missing.
var gaps = map[string]func(*testing.T) string{
	"A release": func(t *testing.T) string {
		return regexp.MustCompile(`(?m)^## \[\d.*`).FindString(read(t, "../../CHANGELOG.md"))
	},
	"Forges other than GitHub, such as GitLab or Gitea": func(t *testing.T) string {
		return inSources(t, func(path string) bool { return !strings.HasPrefix(path, "gitops/github/") }, `func \(.*\) CreatePullRequest\(`)
	},
	"Windows": func(t *testing.T) string {
		return regexp.MustCompile(`(?m)^TARGETS .*windows.*`).FindString(read(t, "../../Makefile"))
	},
	"Confinement of commands on macOS": func(t *testing.T) string {
		return inSources(t, func(path string) bool { return strings.HasPrefix(path, "policy/") }, `sandbox-exec|sandbox_init`)
	},
	"Model APIs other than Responses and Chat Completions": func(t *testing.T) string {
		for _, wire := range schemaAt(t, "model", "wire").Enum {
			if wire != "responses" && wire != "chat" {
				return "model.wire: " + wire
			}
		}
		return ""
	},
	"OAuth at MCP servers": func(t *testing.T) string {
		for key := range schemaAt(t, "mcp_servers", "*").Properties {
			if strings.Contains(key, "oauth") {
				return "mcp_servers.*." + key
			}
		}
		return inSources(t, func(path string) bool { return strings.HasPrefix(path, "runner/agent/extensions/") }, `(?i)oauth`)
	},
	"Services from container images": func(t *testing.T) string {
		if _, is := schemaAt(t, "services", "*").Properties["image"]; is {
			return "services.*.image"
		}
		return ""
	},
	"Hooks of `.claude/` and `.codex/`": func(t *testing.T) string {
		repo, out := gapsCheckout(t)
		cmd := gapsCommand(repo, "run", "--prompt", "x", "--publish", "none", "--out", out, "--replay", filepath.Join(repo, "session.yml"), "--set", "policy.sandbox=danger-full-access")
		if said, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(said), "no_changes/") {
			t.Fatalf("%v\n%s", err, said)
		}
		return regexp.MustCompile(`"type":"hooks?"`).FindString(read(t, filepath.Join(out, "transcript.jsonl")))
	},
	"Skills in the user's folder": func(t *testing.T) string {
		repo, _ := gapsCheckout(t)
		said, err := gapsCommand(repo, "validate", "job.yml", "--json").Output()
		if err != nil || !strings.Contains(string(said), "of-the-repository") {
			t.Fatalf("%v\n%s", err, said)
		}
		return regexp.MustCompile(`of-the-user`).FindString(string(said))
	},
}

// gapsCheckout makes a checkout with hooks of other programs and a skill, below a home folder with a
// skill, and names a folder for a run.
func gapsCheckout(t *testing.T) (repo, out string) {
	t.Helper()
	w := newWorkshop(t)
	repo = filepath.Join(w.dir, "repo")
	const skill = "---\nname: %\ndescription: Says how.\n---\nSo.\n"
	const hooks = `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "false"}]}], "SessionStart": [{"hooks": [{"type": "command", "command": "false"}]}]}}`
	for name, text := range map[string]string{
		".claude/skills/of-the-user/SKILL.md": skill, ".agents/skills/of-the-user/SKILL.md": skill, "repo/.agents/skills/of-the-repository/SKILL.md": skill,
		"repo/job.yml": "version: 1\ntask: {prompt: x}\n", "repo/.claude/settings.json": hooks, "repo/.codex/hooks.json": hooks,
		"repo/session.yml": "version: 1\nturns:\n  - output: [{call: exec_command, arguments: {cmd: \"true\"}}]\n  - output: [{say: Done.}]\n",
	} {
		w.write(name, strings.ReplaceAll(text, "name: %", "name: "+filepath.Base(filepath.Dir(name))))
	}
	w.repository(repo)
	return repo, filepath.Join(w.dir, "out")
}

// gapsCommand is agent-ci in a checkout, whose home is the folder around it.
func gapsCommand(repo string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = repo, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(repo), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	return cmd
}

// inSources returns the first file of Go that has a pattern, among those at paths from the root that fit,
// tests left out.
func inSources(t *testing.T, fits func(path string) bool, pattern string) (found string) {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	for _, folder := range []string{"cmd", "gitops", "policy", "runner", "tools"} {
		must.Do(t, fs.WalkDir(os.DirFS("../.."), folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || !fits(path) {
				return err
			}
			raw, err := os.ReadFile(filepath.Join("../..", path))
			if err == nil && found == "" && expression.Match(raw) {
				found = path
			}
			return err
		}))
	}
	return found
}

// jobSchema is as much of a JSON Schema as is read here.
type jobSchema struct {
	Enum       []string
	Properties map[string]*jobSchema
	// Additional is the schema of the values of a mapping with any names, or false.
	Additional json.RawMessage `json:"additionalProperties"`
}

// schemaAt returns the schema of a key of the job file; * stands for any name.
func schemaAt(t *testing.T, path ...string) *jobSchema {
	t.Helper()
	raw := must.Get(exec.Command(binary, "schema").Output())(t)
	at := &jobSchema{}
	must.Do(t, json.Unmarshal(raw, at))
	for _, name := range path {
		below := at.Properties[name]
		if name == "*" {
			below = &jobSchema{}
			must.Do(t, json.Unmarshal(at.Additional, below))
		}
		if below == nil {
			t.Fatalf("the schema has no %s", strings.Join(path, "."))
		}
		at = below
	}
	return at
}

// Each row of the page has a check, each check a row, and what a row names is missing.
func TestGapsAreMissingFeatures(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, found := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(documents(t)[gapsPage], -1) {
		if found[1] != "missing" {
			rows = append(rows, found[1])
		}
	}
	for _, row := range rows {
		exists := gaps[row]
		if exists == nil {
			t.Errorf("%s: nothing checks whether %q is missing; add it to gaps", gapsPage, row)
			continue
		}
		t.Run(row, func(t *testing.T) {
			must.Same(t, "", exists(t), row, "is there by now", "take the row out of", gapsPage)
		})
	}
	for row := range gaps {
		must.Same(t, true, slices.Contains(rows, row), gapsPage, "has no row", row)
	}
}

// absence is how pages claim that something does not exist.
var absence = regexp.MustCompile(`(?i)\bnot (?:yet )?(?:supported|implemented|built in)\b|\bnot yet (?:possible|available|there)\b|\bdo(?:es)? not do yet\b|\bno (?:sub-?agents|oauth|prices? (?:is |are )?built|release yet|releases? so far|windows)\b|\b(?:github|gitlab) only\b|\bno support for\b`)

// A page or help text that says what is missing links to the page that is checked, in the same line.
func TestGapClaimsLinkToGapsPage(t *testing.T) {
	t.Parallel()
	texts := documents(t)
	delete(texts, gapsPage)
	delete(texts, "CHANGELOG.md") // what was so once
	for _, name := range commandNames(t) {
		out := must.Get(exec.Command(binary, name, "--help").Output())(t)
		texts["agent-ci "+name+" --help"] = string(out)
	}
	for from, text := range texts {
		for line := range strings.Lines(text) {
			if found := absence.FindString(line); found != "" && !strings.Contains(line, "gaps.md") {
				t.Errorf("%s says %q; put it into %s, with a check, and link to that:\n%s", from, found, gapsPage, line)
			}
		}
	}
	for _, old := range []string{"There is no release yet: build it.", "No sub-agents.", "No prices built in.", "are given tokens, no OAuth", "GitHub only, though", "Windows is not supported"} {
		must.Same(t, true, absence.MatchString(old), old, "is not taken for a claim")
	}
	if !strings.Contains(texts["README.md"], "(docs/internals/gaps.md)") || !strings.Contains(texts["docs/README.md"], "(internals/gaps.md)") {
		t.Error("the READMEs do not lead to " + gapsPage)
	}
}
