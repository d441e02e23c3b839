package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
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

// floor lists the packages open to every package.
var floor = []string{"policy/clip", "policy/lazyregexp", "policy/pathname", "policy/plainjson", "policy/shellword", "policy/store"}

// wings are the folders of runner, from the top down: a package imports from its own wing and
// from those below. Package runner, the pipeline, is above them all; the benchmarks import none.
var wings = []string{"setup", "campaign", "replay", "publish", "agent", "check", "place", "task", "record"}

// roomKnows says the same of rooms that are to know less than their part may: what
// docs/internals/architecture.md has them refuse to know, they cannot import.
var roomKnows = map[string][]string{
	"runner/task/actions":     {"runner/record/boundedfile"},
	"runner/agent":            {"runner/agent/model", "runner/record/outcome", "runner/record/price", "runner/record/transcript", "tools"},
	"runner/publish/artifact": {"runner/publish", "runner/publish/bundle", "runner/record/boundedfile", "runner/record/outcome", "runner/record", "runner/task/settings", "runner/record/transcript", "gitops/github"},
	"runner/publish/bundle": {
		"runner/task/form", "runner/task/actions", "runner/task/intake", "runner/task/job", "runner/record/outcome", "runner/agent/hooks", "runner/publish", "runner/record", "runner/task/settings", "runner/record/transcript", "runner/place", "gitops", "policy",
	},
	"runner/campaign": {
		"runner/record/boundedfile", "runner/task/intake", "runner/task/job", "runner/record/outcome", "runner/record/price", "runner/publish/progress", "runner/record", "runner/record/transcript", "runner/place/workspace", "gitops", "policy/outside",
	},
	"runner/campaign/cluster": {"runner/campaign", "runner/task/job"},
	"runner/campaign/here":    {"runner/task/config", "runner/campaign", "runner/record/boundedfile", "runner/task/job", "runner/record/outcome", "runner/record/price", "runner/publish/progress", "runner/record", "runner/record/transcript", "runner/place/workspace", "gitops", "policy/outside"},
	"runner/campaign/resolve": {"runner/task/form", "policy/outside", "runner/campaign", "runner/record/boundedfile", "runner/task/intake", "runner/task/job", "gitops"},
	"runner/campaign/show":    {"runner/campaign", "runner/task/job", "runner/publish/progress", "runner/record/transcript"},
	"runner/place/confine": {
		"runner/place/egress", "runner/place/services", "runner/task/job", "runner/record/outcome", "runner/record", "runner/task/settings", "runner/record/transcript", "gitops", "policy",
	},
	"runner/place/egress":   {"runner/record", "runner/task/job", "runner/task/settings", "policy"},
	"runner/place/services": {"runner/record", "runner/task/form", "runner/task/job", "policy"},
	"runner/setup/doctor": {
		"runner/place/confine", "runner/place/services", "runner/agent/extensions", "runner/agent/identity", "runner/task/intake", "runner/agent/model", "runner/agent/access", "runner/record/outcome", "runner/setup/look", "runner/setup/onboard", "runner/setup/preflight", "runner/publish", "runner/record/price", "runner/place/sandboxcommand", "runner/task/job", "runner/task/settings", "runner/place/workspace", "gitops", "policy/outside", "policy/sandbox",
	},
	"runner/publish/feedback": {"runner/agent/hooks", "runner/task", "runner/record/outcome", "runner/record", "runner/record/transcript", "gitops"},
	"runner/agent/identity":   {"runner/record/boundedfile", "runner/task/job", "runner/agent/model", "runner/record/outcome", "runner/task/settings"},
	"runner/task/intake": {
		"runner/task/form", "runner/task/actions", "runner/agent", "runner/task/job", "runner/task/settings", "runner/record/outcome", "runner/record", "runner/record/transcript", "gitops", "tools",
	},
	"runner/task/intake/clean": {
		"runner/record/transcript/markdown",
	},
	"runner/check/judge":          {"runner/record/boundedfile", "runner/task/job", "runner/record/outcome", "runner/record", "runner/record/transcript/markdown", "gitops", "policy"},
	"runner/place/sandboxcommand": {"runner/place/confine", "runner/place/egress", "runner/task/job", "runner/record/outcome", "runner/record", "runner/task/settings", "runner/place/workspace", "gitops", "policy"},
	"runner/check/verify":         {"runner/place/confine", "runner/place/services", "runner/record/boundedfile", "runner/task/job", "runner/record/outcome", "runner/record", "runner/record/transcript", "runner/place/workspace", "gitops", "policy", "policy/shell"},
	"runner/check/claims":         {"runner/check/lines", "runner/record/transcript"},
	"runner/check/inspect":        {"runner/check/claims", "runner/check/lines", "runner/check/silenced", "runner/check/workflows", "runner/record", "runner/task/job", "gitops"},
	"runner/check/lines":          nil,
	"runner/check/silenced":       {"policy", "runner/check/lines", "runner/record/transcript"},
	"runner/check/workflows":      {"runner/record/transcript"},
	"runner/check/verify/testresults": {
		"runner/record/transcript/markdown",
	},
	"runner/record/runs":     {"runner/record/outcome", "runner/record", "runner/record/transcript", "policy/sandbox"},
	"runner/setup/onboard":   {"gitops/forge", "gitops/github", "runner/record/boundedfile", "runner/record/outcome", "policy/reach"},
	"runner/setup/preflight": {"runner/task/job", "runner/record/outcome", "runner/publish", "runner/task/settings", "runner/agent/access", "runner/agent/provider", "policy"},
	"runner/publish/repair":  {"runner/check/judge", "runner/record", "runner/task", "gitops"},
	"runner/publish":         {"runner/task/form", "runner/agent/hooks", "runner/record/boundedfile", "runner/task/intake", "runner/task/job", "runner/record/outcome", "runner/record", "runner/task/settings", "runner/record/transcript", "runner/place/workspace", "gitops"},
	"runner/campaign/spec":   {"runner/task/config", "runner/task/form", "runner/task/job"},
	"runner/task/form":       {"policy", "policy/reach"},
	"runner/task/config":     {"runner/task/form"},
	"runner/task/compare":    {"runner/task/config", "runner/task/job"},
	"runner/task/job":        {"runner/task/config", "runner/task/form", "policy/credential", "policy/reach", "tools"},
	"runner/agent/lessons":   {"runner/task/config", "runner/record/boundedfile", "runner/task/job", "tools"},
	"runner/publish/proposals": {
		"runner/task/config", "runner/check/judge",
		"runner/task/intake", "runner/task/job", "runner/agent/lessons", "runner/record/outcome", "runner/publish", "runner/record", "runner/record/transcript", "runner/agent/assembly", "runner/place/workspace", "gitops", "tools/memory",
	},
	"runner/agent/model":                {"runner/task/config", "runner/record/outcome", "runner/record/price", "policy/reach"},
	"runner/record/outcome":             nil,
	"runner/record/price":               nil,
	"runner/publish/progress":           {"runner/task/actions", "runner/task/intake", "runner/record/outcome", "runner/record", "runner/record/transcript", "gitops", "policy/secrets"},
	"runner/record":                     {"runner/record/boundedfile", "runner/record/outcome", "runner/record/transcript", "gitops/changeset", "policy/sandbox", "policy/secrets"},
	"runner/task/settings":              {"runner/task/config", "runner/record/boundedfile", "runner/task/job", "runner/record/outcome", "gitops", "policy"},
	"runner/record/transcript":          {"runner/record/outcome", "runner/record/price", "gitops/changeset", "gitops/v4a", "tools/dialect"},
	"runner/record/transcript/document": nil,
	"runner/record/transcript/sections": {"runner/record/outcome", "runner/record/transcript", "gitops/changeset"},
	"runner/agent/extensions":           {"runner/place/confine", "runner/record", "runner/task", "gitops", "policy", "tools"},
	"runner/agent/team":                 {"runner/agent", "runner/check/judge", "runner/place/confine", "runner/record", "runner/task/job", "gitops", "policy/sandbox", "tools"},
	"runner/agent/hooks":                {"runner/place/confine", "runner/task/job", "runner/record/outcome", "runner/record", "runner/task/settings", "runner/record/transcript", "gitops/v4a", "policy/outside", "policy", "tools"},
	"runner/agent/access":               {"runner/agent/identity", "runner/agent/model", "runner/agent/provider", "runner/record", "runner/task/job", "runner/task/settings", "policy/secrets"},
	"runner/agent/provider":             {"runner/agent/model", "runner/record/boundedfile", "runner/record/outcome", "runner/record/price", "runner/task/job", "runner/task/settings", "tools"},
	"runner/agent/assembly": {
		"runner/task/form", "runner/agent", "runner/place/confine", "runner/place/services", "runner/agent/extensions", "runner/record/boundedfile", "runner/agent/hooks", "runner/task/intake", "runner/task/job", "runner/agent/model", "runner/record/outcome", "runner/record/price", "runner/record",
		"runner/task/settings", "runner/agent/skills", "runner/record/transcript", "runner/place/workspace", "gitops", "policy", "tools",
	},
	"runner/agent/skills":         {"runner/record", "runner/record/transcript", "gitops", "tools"},
	"runner/place/workspace":      {"runner/record/boundedfile", "runner/record/outcome", "runner/record", "runner/task/settings", "runner/record/transcript", "gitops", "policy/filetime", "policy/sandbox"},
	"tools/code":                  {"policy/sandbox", "policy/secrets", "tools"},
	"tools/agents":                {"tools"},
	"tools/dialect":               nil,
	"tools/code/declare":          {"tools"},
	"tools/code/engine":           {"tools/script/message"},
	"policy/sandbox":              {"policy/outside"},
	"policy/sandbox/attached":     {"policy/sandbox"},
	"policy/sandbox/filter":       {"policy/sandbox/stage"},
	"policy/secrets":              nil,
	"gitops/changeset":            nil,
	"gitops/forge":                nil,
	"gitops/github":               {"gitops/forge", "gitops/internal", "policy/reach"},
	"gitops/remote":               {"gitops/internal", "policy/outside", "policy/reach"},
	"gitops/rules":                nil,
	"gitops/v4a":                  {"gitops/charset", "gitops/find"},
	"gitops/charset":              nil,
	"gitops/find":                 nil,
	"gitops/editformat":           {"gitops/charset", "gitops/find", "gitops/v4a"},
	"gitops/v4a/tree":             {"gitops/charset", "gitops/v4a"},
	"gitops/guard":                {"gitops/internal/program", "gitops/internal/regularfile", "policy/outside"},
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
		must.Same(t, true, known, here, "is in no part of the design")
		wantImports(t, p, append(slices.Clone(allowed), part))
	}
}

func TestWingsImportDownwards(t *testing.T) {
	t.Parallel()
	level := func(importPath string) (level int, in bool) {
		below, in := strings.CutPrefix(importPath, module+"runner")
		if !in || below == "" {
			return 0, in
		}
		wing, _, _ := strings.Cut(below[1:], "/")
		at := slices.Index(wings, wing)
		if at < 0 && wing != "bench" {
			t.Errorf("%s is in no wing", importPath)
		}
		return at + 1, true
	}
	for _, p := range packages(t) {
		from, in := level(p.ImportPath)
		for _, imported := range p.Imports {
			if to, ours := level(imported); in && ours && to < from {
				t.Errorf("%s imports %s, which is above it", p.ImportPath, imported)
			}
		}
	}
}

func TestPackagesAvoidForbiddenImports(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		allowed, listed := roomKnows[room]
		for !listed && room != "." { // the nearest above holds
			room = path.Dir(room)
			allowed, listed = roomKnows[room]
		}
		if listed {
			found[room] = true
			wantImports(t, p, append(slices.Clone(allowed), room))
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
func TestStageImportsFewPackages(t *testing.T) {
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
func TestTextPackagesOpenNoFiles(t *testing.T) {
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
	if strings.HasSuffix(p.Name, "test") || p.Name == "golden" { // a package for tests
		roots = append(roots, "policy/must")
	}
	for _, imported := range p.Imports {
		target, ours := strings.CutPrefix(imported, module)
		if ours && !slices.Contains(floor, target) && !slices.ContainsFunc(roots, func(root string) bool { return within(target, root) }) {
			t.Errorf("%s imports %s", strings.TrimPrefix(p.ImportPath, module), target)
		}
	}
}

func within(name, root string) bool { return name == root || strings.HasPrefix(name, root+"/") }

func TestPackagesHaveDocComments(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no doc comment", p.ImportPath)
		}
		must.Same(t, false, slices.Contains([]string{"util", "utils", "common", "helpers", "types", "misc"}, path.Base(p.ImportPath)), p.ImportPath, "is named after nothing")
	}
}

// packages lists the module's packages that have more than tests.
func packages(t *testing.T) []goPackage {
	t.Helper()
	return must.Get(listedPackages())(t)
}

// listedPackages asks go once for all tests.
var listedPackages = sync.OnceValues(func() (all []goPackage, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Name,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	for dec := json.NewDecoder(bytes.NewReader(out)); err == nil; {
		var p goPackage
		if err = dec.Decode(&p); err == nil && p.Name != "" {
			all = append(all, p)
		}
	}
	if errors.Is(err, io.EOF) && len(all) >= 10 {
		return all, nil
	}
	return nil, fmt.Errorf("go list names %d packages: %w", len(all), err)
})
