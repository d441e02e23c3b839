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
	"tools":  {"policy", "gitops/v4a", "gitops/rules"},
	"policy": nil,
	"gitops": nil,
}

type goPackage struct {
	ImportPath string
	Doc        string
	Name       string
	Imports    []string
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		part, _, _ := strings.Cut(here, "/")
		allowed, known := mayImport[part]
		if !known {
			t.Errorf("%s is in no part of the design", here)
		}
		for _, imported := range p.Imports {
			target, ours := strings.CutPrefix(imported, module)
			if ours && !slices.ContainsFunc(append(allowed, part), func(root string) bool { return target == root || strings.HasPrefix(target, root+"/") }) {
				t.Errorf("%s imports %s", here, target)
			}
		}
	}
}

func TestPackagesSayWhatTheyOwn(t *testing.T) {
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
