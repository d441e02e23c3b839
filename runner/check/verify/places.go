package verify

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
	"github.com/agent-ci/agent-ci/runner/record"
)

// relativePaths makes paths in a check's tree relative, at the checkout's path or in the run directory.
func (c Checks) relativePaths(text string) string {
	if !strings.Contains(text, "/") {
		return text
	}
	for _, tree := range []string{c.Workspace.SandboxPath(), c.Record.Join(record.PrivateTree)} {
		text = withoutFolder(text, tree+"/", !dropNext)
	}
	return withoutFolder(text, c.Record.Join(record.StateFolder)+"/", dropNext)
}

// dropNext also removes the element after the folder: /run/state/tree-1/a.go becomes a.go.
const dropNext = true

// withoutFolder removes a folder from the start of the paths in a text. The folder ends in a slash.
func withoutFolder(text, folder string, dropNext bool) string {
	var s strings.Builder
	for {
		before, after, found := strings.Cut(text, folder)
		if !found {
			break
		}
		rest := after
		if dropNext {
			end := strings.IndexAny(rest, "/ \t\n\"'")
			if end < 0 || rest[end] != '/' {
				break
			}
			rest = rest[end+1:]
		}
		isLongerPath := before != "" && testsource.IsWordByte(before[len(before)-1])
		if isLongerPath {
			before, rest = before+folder, after
		}
		s.WriteString(before)
		text = rest
	}
	return s.String() + text
}

// maxModules bounds how many Go modules are distinguished.
const maxModules = 200

// addFolders adds folders to the file names of Go tests, because go test prints bare names.
func (c Checks) addFolders(ctx context.Context, results *testresults.Results) error {
	var modules map[string]string // folders by import path
	for i := range results.Failing {
		t := &results.Failing[i]
		isBareName := strings.HasSuffix(t.File, ".go") && !strings.Contains(t.File, "/")
		if t.Package == "" || t.LoadError || !isBareName {
			continue
		}
		if modules == nil {
			var err error
			if modules, err = c.moduleFolders(ctx); err != nil {
				return fmt.Errorf("look for modules of Go: %w", err)
			}
		}
		for module := t.Package; module != "." && module != "/"; module = path.Dir(module) { // the package's module is the nearest one above
			if folder, found := modules[module]; found {
				t.File = path.Join(folder, strings.TrimPrefix(t.Package, module), t.File)
				break
			}
		}
	}
	return nil
}

// moduleFolders returns the folders of the checkout's Go modules by module name.
func (c Checks) moduleFolders(ctx context.Context) (map[string]string, error) {
	checkout := c.Workspace.Checkout()
	files, err := checkout.TrackedEndingIn(ctx, "go.mod")
	if err != nil {
		return nil, err
	}
	names, modules := testsource.NewLocator(checkout, nil), map[string]string{}
	for _, file := range files[:min(len(files), maxModules)] {
		if path.Base(file) != "go.mod" {
			continue
		}
		if module := names.Module(path.Dir(file)); module != "" {
			modules[module] = path.Dir(file)
		}
	}
	return modules, nil
}
