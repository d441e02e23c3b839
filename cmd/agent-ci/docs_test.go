package main_test

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// documents are the pages for people, by their path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	read := func(path string) {
		raw := read(t, filepath.Join("../..", path))
		pages[path] = raw
	}
	read("README.md")
	read("CHANGELOG.md")
	read("CONTRIBUTING.md")
	err := fs.WalkDir(os.DirFS("../.."), "docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			read(path)
		}
		return err
	})
	must.Do(t, err)
	return pages
}

var (
	fenced      = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	inline      = regexp.MustCompile("`[^`\n]+`")
	link        = regexp.MustCompile(`(?:\]\(|\bsrc="|\bsrcset=")([^)\s"]+)`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_\- ]`)
)

// anchors are what the headings of a page can be linked by, as GitHub names them.
func anchors(page string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(found[1])), ""), " ", "-")
		all = append(all, name)
	}
	return all
}

func TestDocumentLinksResolve(t *testing.T) {
	t.Parallel()
	pages, followed := documents(t), 0
	for from, page := range pages {
		text := inline.ReplaceAllStringFunc(fenced.ReplaceAllString(page, ""), func(code string) string { return strings.ReplaceAll(code, "](", "") })
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			followed++
			target, anchor, anchored := strings.Cut(found[1], "#")
			path := from
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(from), target))
			}
			if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
				t.Errorf("%s: %s leads nowhere", from, found[1])
			}
			if anchored && !slices.Contains(anchors(pages[path]), anchor) {
				t.Errorf("%s: %s has no heading #%s", from, path, anchor)
			}
		}
	}
	if followed < 50 {
		t.Errorf("there are only %d links", followed)
	}
}

var (
	called = regexp.MustCompile(`(?:^|[\s/])agent-ci ([a-z][a-z-]*)(.*)`)
	dashed = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
)

// callsIn are the lines of a page that call the program: in blocks, indented or
// between back quotes.
func callsIn(page string) [][]string {
	var calls [][]string
	var code []string
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		code = append(code, strings.Split(block[1], "\n")...)
	}
	for _, word := range inline.FindAllString(fenced.ReplaceAllString(page, ""), -1) {
		if word = strings.Trim(word, "`"); strings.HasPrefix(word, "agent-ci ") {
			code = append(code, word)
		}
	}
	for _, line := range code {
		line, _, _ = strings.Cut(line, " # ")
		if found := called.FindStringSubmatch(line); found != nil && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			own, _, _ := strings.Cut(found[2]+" ", " -- ")
			calls = append(calls, []string{found[1], own})
		}
	}
	return calls
}

// Commands and flags that documents name are those of the program.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	helps := map[string]string{}
	for _, name := range commandNames(t) {
		out := must.Get(exec.Command(binary, name, "--help").Output())(t)
		helps[name] = string(out) + "  --help "
	}
	looked := 0
	pages := documents(t)
	delete(pages, "docs/reference/commands.md") // the help texts themselves
	for from, page := range pages {
		for _, call := range callsIn(page) {
			looked++
			help, known := helps[call[0]]
			if !known && call[0] != "help" {
				t.Errorf("%s: there is no command agent-ci %s", from, call[0])
				continue
			}
			for _, flag := range dashed.FindAllStringSubmatch(call[1], -1) {
				if !strings.Contains(help, "\n  --"+flag[1]+" ") && flag[1] != "help" {
					t.Errorf("%s: agent-ci %s has no flag --%s", from, call[0], flag[1])
				}
			}
		}
	}
	if looked < 15 {
		t.Errorf("only %d calls were found", looked)
	}
}

// TestCommandsPage holds docs/reference/commands.md to the help texts; -update rewrites it.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	const file = "../../docs/reference/commands.md"
	var table, sections strings.Builder
	for _, name := range commandNames(t) {
		out := must.Get(exec.Command(binary, name, "--help").Output())(t)
		about, details, _ := strings.Cut(string(out), "\n\n")
		fmt.Fprintf(&table, "| [`%s`](#%s) | %s |\n", name, name, strings.ToUpper(about[:1])+about[1:])
		fmt.Fprintf(&sections, "\n## %s\n\n```text\n%s```\n", name, details)
	}
	page := read(t, file)
	before, _, found := strings.Cut(page, commandsBegin)
	if !found {
		t.Fatalf("%s lacks the line %q", file, commandsBegin)
	}
	want := before + commandsBegin + "\n| command | |\n|---|---|\n" + table.String() + sections.String() + "\n<!-- End of the tables. -->\n"
	golden.Compare(t, file, want)
}

const commandsBegin = "<!-- Generated by go test ./cmd/agent-ci -run TestCommandsPage -update. -->\n"

// What documents call by make is a target of the Makefile.
func TestDocumentedMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile, looked := read(t, "../../Makefile"), 0
	for _, from := range []string{"README.md", "CONTRIBUTING.md", "docs/start/first-run.md", "docs/how-to/campaigns.md"} {
		for _, found := range regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z0-9-]*)").FindAllStringSubmatch(documents(t)[from], -1) {
			looked++
			if !strings.Contains(makefile, "\n"+found[1]+": ") {
				t.Errorf("%s: there is no make %s", from, found[1])
			}
		}
	}
	if looked < 15 {
		t.Errorf("only %d targets were found", looked)
	}
}

// An outcome and reason that a page for people in trouble names are in the list.
func TestTroubleshootingReasonsExist(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	named := regexp.MustCompile("`([a-z_]+)/([a-z_]+)`")
	for _, page := range []string{"docs/how-to/troubleshooting.md", "docs/start/first-run.md"} {
		looked := 0
		for _, found := range named.FindAllStringSubmatch(pages[page], -1) {
			looked++
			_, section, _ := strings.Cut(pages["docs/reference/outcomes.md"], "\n## "+found[1]+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			if found[0] != "`changed/pushed`" && !strings.Contains(section, "| `"+found[2]+"` |") {
				t.Errorf("%s: docs/reference/outcomes.md has no reason %s", page, found[0])
			}
		}
		if looked < 5 {
			t.Errorf("%s names %d reasons", page, looked)
		}
	}
}

// The sentences that docs/how-to/troubleshooting.md quotes are those of the code.
func TestTroubleshootingQuotesMessages(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, folder := range []string{"runner", "gitops", "policy"} {
		must.Do(t, filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			code.WriteString(strings.ToLower(string(raw)))
			return err
		}))
	}
	given := regexp.MustCompile(`…|#?\d+|"[^"]*"|[(),;:.]`)
	looked := 0
	for _, quoted := range regexp.MustCompile("(?m)^\\| `[a-z_]+/[a-z_]+`: ([^|]+) \\|").FindAllStringSubmatch(documents(t)["docs/how-to/troubleshooting.md"], -1) {
		for _, words := range given.Split(quoted[1], -1) {
			if words = strings.TrimSpace(words); len(strings.Fields(words)) < 4 {
				continue
			}
			looked++
			must.Same(t, true, strings.Contains(code.String(), strings.ToLower(words)), "no code says", words)
		}
	}
	if looked < 25 {
		t.Errorf("only %d parts of sentences were found", looked)
	}
}

// TestLimitsPage writes docs/reference/limits.md from testdata/limits.txt, which says what each limit is of, and
// the constants of the code, which have the numbers.
func TestLimitsPage(t *testing.T) {
	t.Parallel()
	const file = "../../docs/reference/limits.md"
	var tables strings.Builder
	for line := range strings.Lines(read(t, "testdata/limits.txt")) {
		line = strings.TrimSpace(line)
		if heading, found := strings.CutPrefix(line, "# "); found {
			fmt.Fprintf(&tables, "\n## %s\n\n| what | at most |\n|---|--:|\n", heading)
			continue
		}
		place, what, _ := strings.Cut(line, " | ")
		words := strings.Fields(place)
		if len(words) != 3 || what == "" {
			t.Fatalf("not a limit: %q", line)
		}
		fmt.Fprintf(&tables, "| %s | %s |\n", what, amount(constantIn(t, words[0], words[1]), words[2]))
	}
	page := read(t, file)
	before, rest, found := strings.Cut(page, "<!-- Generated ")
	comment, _, _ := strings.Cut(rest, "\n")
	if !found {
		t.Fatalf("%s lacks the line behind which the tables are", file)
	}
	want := before + "<!-- Generated " + comment + "\n" + tables.String() + "\n<!-- End of the tables. -->\n"
	golden.Compare(t, file, want)
}

// constantIn returns the number that a file gives to a constant or to a field of a literal.
func constantIn(t *testing.T, file, name string) int64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)\b` + name + `\s*(?:=|:)\s*([^=/,\n}]+)`).FindStringSubmatch(read(t, "../../"+file))
	if found == nil {
		t.Fatalf("%s has no %s", file, name)
	}
	numbers := strings.NewReplacer("time.Minute", "60e9", "time.Second", "1e9", "time.Millisecond", "1e6").Replace(strings.TrimSpace(found[1]))
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, numbers)
	must.Do(t, err, file, name)
	n, exact := constant.Int64Val(constant.ToInt(value.Value))
	if !exact {
		t.Fatalf("%s: %s is no whole number", file, name)
	}
	return n
}

// amount is a number of a unit as people write it.
func amount(n int64, unit string) string {
	switch unit {
	case "time":
		return strings.NewReplacer("m0s", " min", "s", " s").Replace(time.Duration(n).String())
	case "bytes":
		for _, u := range []struct {
			size int64
			name string
		}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if n >= u.size && n%u.size == 0 {
				return transcript.GroupThousands(n/u.size) + " " + u.name
			}
		}
	case "count":
		return transcript.GroupThousands(n)
	}
	return transcript.GroupThousands(n) + " " + unit
}

// Every test that docs/internals/security.md names is in the file that it leads to.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`\[(Test\w+)\]\(\.\./\.\./([^)]+)\)`).FindAllStringSubmatch(documents(t)["docs/internals/security.md"], -1)
	if len(named) < 40 {
		t.Fatalf("%d tests are named", len(named))
	}
	for _, found := range named {
		raw := read(t, filepath.Join("../..", found[2]))
		if !strings.Contains(raw, "func "+found[1]+"(t *testing.T)") {
			t.Errorf("%s has no %s", found[2], found[1])
		}
	}
}

// TestMCPGuideJobsAreValid validates the jobs of docs/reference/mcp.md, the parts of jobs among them.
func TestMCPGuideJobsAreValid(t *testing.T) {
	t.Parallel()
	jobs := yamlBlocks(t, "docs/reference/mcp.md")
	for i, job := range jobs {
		if !strings.HasPrefix(job, "version:") {
			job = "version: 1\ntask: {prompt: x}\n" + job
		}
		path := filepath.Join(t.TempDir(), "job.yml")
		must.Write(t, path, job)
		if out, err := exec.Command(binary, "validate", path).CombinedOutput(); err != nil {
			t.Errorf("block %d: %v\n%s\n%s", i+1, err, out, job)
		}
	}
	if len(jobs) < 7 {
		t.Errorf("there are only %d jobs", len(jobs))
	}
}

var yamlFence = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```")

// yamlBlocks are the blocks of YAML of a page.
func yamlBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	for _, found := range yamlFence.FindAllStringSubmatch(documents(t)[page], -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}
