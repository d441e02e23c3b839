package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/agent-ci/agent-ci/"

// mayImport says for each part of the program what else of it a package may
// import; its own subpackages and its parents' are always allowed.
var mayImport = map[string][]string{
	"cmd":    {"runner", "tools", "gitops", "policy"},
	"runner": {"tools", "gitops", "policy"},
	"tools":  {"policy", "gitops/charset", "gitops/editformat", "gitops/find", "gitops/v4a", "gitops/rules"},
	"policy": nil,
	"gitops": {"policy/outside", "policy/reach"},
}

// roomKnows says the same of rooms that are to know less than their part may: what
// docs/internals/architecture.md has them refuse to know, they cannot import.
var roomKnows = map[string][]string{
	"runner/actions":  {"runner/given"},
	"runner/agent":    {"runner/model", "runner/outcome", "runner/price", "runner/transcript", "tools"},
	"runner/artifact": {"runner/bundle", "runner/given", "runner/outcome", "runner/record", "runner/settings", "runner/transcript", "gitops/github"},
	"runner/bundle": {
		"runner/actions", "runner/intake", "runner/job", "runner/outcome", "runner/publish", "runner/record", "runner/settings", "runner/transcript", "runner/workspace", "gitops", "policy",
	},
	"runner/campaign": {
		"runner/given", "runner/intake", "runner/job", "runner/outcome", "runner/price", "runner/progress", "runner/record", "runner/transcript", "runner/workspace", "gitops", "policy/outside",
	},
	"runner/campaign/cluster": {"runner/campaign", "runner/job"},
	"runner/campaign/here":    {"runner/campaign", "runner/given", "runner/job", "runner/outcome", "runner/price", "runner/progress", "runner/record", "runner/transcript", "runner/workspace", "gitops", "policy/outside"},
	"runner/campaign/resolve": {"policy/outside", "runner/campaign", "runner/given", "runner/intake", "runner/job", "gitops"},
	"runner/campaign/show":    {"runner/campaign", "runner/job", "runner/progress", "runner/transcript"},
	"runner/confine": {
		"runner/job", "runner/outcome", "runner/record", "runner/settings", "runner/transcript", "gitops", "policy", "tools",
	},
	"runner/doctor": {
		"runner/confine", "runner/extensions", "runner/identity", "runner/intake", "runner/model", "runner/outcome", "runner/preflight", "runner/price", "runner/sandboxcommand", "runner/settings", "runner/workspace", "gitops", "policy/outside", "policy/sandbox",
	},
	"runner/feedback": {"runner/intake", "runner/job", "runner/outcome", "runner/record", "runner/transcript", "gitops"},
	"runner/identity": {"runner/given", "runner/job", "runner/model", "runner/outcome", "runner/settings"},
	"runner/intake": {
		"runner/actions", "runner/agent", "runner/job", "runner/outcome", "runner/record", "runner/transcript", "gitops", "tools",
	},
	"runner/intake/clean": {
		"runner/transcript/markdown",
	},
	"runner/judge":          {"runner/given", "runner/job", "runner/outcome", "runner/record", "runner/transcript/markdown", "gitops", "policy"},
	"runner/sandboxcommand": {"runner/confine", "runner/job", "runner/outcome", "runner/record", "runner/settings", "runner/workspace", "gitops", "policy"},
	"runner/verify":         {"runner/confine", "runner/given", "runner/job", "runner/outcome", "runner/record", "runner/transcript", "runner/workspace", "gitops", "policy", "policy/shell"},
	"runner/verify/testresults": {
		"runner/transcript/markdown",
	},
	"runner/runs":      {"runner/outcome", "runner/record", "runner/transcript", "policy/sandbox"},
	"runner/onboard":   {"gitops/forge"},
	"runner/preflight": {"runner/job", "runner/outcome", "runner/publish", "runner/settings", "runner/worker", "policy"},
	"runner/publish":   {"runner/given", "runner/intake", "runner/job", "runner/outcome", "runner/record", "runner/settings", "runner/transcript", "runner/workspace", "gitops"},
	"runner/job":       {"policy/credential", "policy/reach", "tools"},
	"runner/lessons":   {"runner/given", "runner/job", "tools"},
	"runner/proposals": {
		"runner/intake", "runner/job", "runner/lessons", "runner/outcome", "runner/publish", "runner/record", "runner/transcript", "runner/worker", "runner/workspace", "gitops", "tools/memory",
	},
	"runner/model":               {"runner/outcome", "runner/price", "policy/reach"},
	"runner/outcome":             nil,
	"runner/price":               nil,
	"runner/progress":            {"runner/actions", "runner/intake", "runner/outcome", "runner/record", "runner/transcript", "gitops", "policy/secrets"},
	"runner/record":              {"runner/given", "runner/outcome", "runner/transcript", "policy/sandbox", "policy/secrets"},
	"runner/settings":            {"runner/given", "runner/job", "runner/outcome", "gitops", "policy"},
	"runner/transcript":          {"runner/outcome", "runner/price", "gitops/v4a", "tools/dialect"},
	"runner/transcript/document": nil,
	"runner/transcript/sections": {"runner/outcome", "runner/transcript"},
	"runner/hooks":               {"runner/confine", "runner/job", "runner/outcome", "runner/record", "runner/settings", "runner/transcript", "gitops/v4a", "policy/outside", "policy", "tools"},
	"runner/worker": {
		"runner/agent", "runner/confine", "runner/extensions", "runner/given", "runner/hooks", "runner/identity", "runner/intake", "runner/job", "runner/model", "runner/outcome", "runner/price", "runner/record",
		"runner/settings", "runner/skills", "runner/transcript", "runner/workspace", "gitops", "policy", "tools",
	},
	"runner/skills":               {"runner/record", "runner/transcript", "gitops", "tools"},
	"runner/workspace":            {"runner/given", "runner/outcome", "runner/record", "runner/settings", "runner/transcript", "gitops", "policy/sandbox"},
	"tools/code":                  {"policy/sandbox", "policy/secrets", "tools"},
	"tools/agents":                {"tools"},
	"tools/dialect":               nil,
	"tools/code/declare":          {"tools"},
	"tools/code/engine":           {"tools/script/message"},
	"policy/sandbox":              {"policy/outside"},
	"policy/sandbox/attached":     {"policy/sandbox"},
	"policy/sandbox/filter":       {"policy/sandbox/stage"},
	"policy/secrets":              nil,
	"gitops/forge":                nil,
	"gitops/github":               {"gitops/forge", "gitops/internal", "policy/reach"},
	"gitops/remote":               {"gitops/internal", "policy/outside"},
	"gitops/rules":                nil,
	"gitops/v4a":                  {"gitops/charset", "gitops/find"},
	"gitops/charset":              nil,
	"gitops/find":                 nil,
	"gitops/editformat":           {"gitops/charset", "gitops/find", "gitops/v4a"},
	"gitops/v4a/tree":             {"gitops/charset", "gitops/v4a"},
	"gitops/guard":                {"gitops/internal/program", "gitops/internal/regularfile"},
	"gitops/internal/index":       nil,
	"gitops/internal/objects":     {"gitops/internal/index", "gitops/internal/regularfile"},
	"gitops/internal/program":     {"policy/outside"},
	"gitops/internal/regularfile": nil,
	"gitops/internal/repository":  {"gitops/internal/index", "gitops/internal/program", "gitops/internal/regularfile", "gitops/rules", "policy/outside"},
}

type goPackage struct {
	ImportPath string
	Doc        string
	Name       string
	Imports    []string
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		part, _, _ := strings.Cut(here, "/")
		allowed, known := mayImport[part]
		if !known {
			t.Errorf("%s is in no part of the design", here)
		}
		wantImports(t, p, append(slices.Clone(allowed), part))
	}
}

func TestRoomsRefuseToKnow(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for room, allowed := range roomKnows {
			if within(here, room) {
				found[room] = true
				wantImports(t, p, append(slices.Clone(allowed), room))
			}
		}
	}
	for room := range roomKnows {
		if !found[room] {
			t.Errorf("there is no %s", room)
		}
	}
}

// The stage runs before all else of the program is initialised, and in each
// process of a sandbox: what it imports is paid for there.
func TestTheStageImportsLittle(t *testing.T) {
	t.Parallel()
	const stage = module + "policy/sandbox/stage"
	all := packages(t)
	i := slices.IndexFunc(all, func(p goPackage) bool { return p.ImportPath == stage })
	if i < 0 {
		t.Fatalf("there is no %s", stage)
	}
	may := []string{"golang.org/x/sys", "github.com/landlock-lsm/go-landlock", "kernel.org/pub/linux/libs/security/libcap/psx"}
	for _, imported := range all[i].Imports {
		host, _, _ := strings.Cut(imported, "/")
		if strings.Contains(host, ".") && !slices.ContainsFunc(may, func(root string) bool { return within(imported, root) }) {
			t.Errorf("it imports %s", imported)
		}
	}
}

// What is text in and verdict out opens no files.
func TestTextsAreReadByOthers(t *testing.T) {
	t.Parallel()
	texts := []string{module + "gitops/editformat", module + "gitops/find", module + "gitops/rules", module + "gitops/v4a"}
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			if slices.Contains(texts, p.ImportPath) && slices.Contains([]string{"io/fs", "os", "syscall"}, imported) {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

// wantImports takes care that all of ours that a package imports is within roots.
func wantImports(t *testing.T, p goPackage, roots []string) {
	t.Helper()
	for _, imported := range p.Imports {
		target, ours := strings.CutPrefix(imported, module)
		if ours && !slices.ContainsFunc(roots, func(root string) bool { return within(target, root) }) {
			t.Errorf("%s imports %s", strings.TrimPrefix(p.ImportPath, module), target)
		}
	}
}

func within(name, root string) bool { return name == root || strings.HasPrefix(name, root+"/") }

func TestPackagesSayWhatTheyOwn(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no doc comment", p.ImportPath)
		}
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "misc"}, path.Base(p.ImportPath)) {
			t.Errorf("%s is named after nothing", p.ImportPath)
		}
	}
}

// packages lists the module's packages that have more than tests.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Name,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		if p.Name != "" {
			all = append(all, p)
		}
	}
	if len(all) < 10 {
		t.Fatalf("go list names %d packages", len(all))
	}
	return all
}
