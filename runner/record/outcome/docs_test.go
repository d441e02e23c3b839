package outcome_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

const docs = "../../../docs/reference/outcomes.md"

// sections are the parts of the page by the outcome that they are about.
func sections(t *testing.T) map[string]string {
	t.Helper()
	page := must.Get(os.ReadFile(docs))(t)
	found := map[string]string{}
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		found[name] = text
	}
	return found
}

func TestDocsListEveryOutcome(t *testing.T) {
	page := must.Get(os.ReadFile(docs))(t)
	parts := sections(t)
	for o, code := range outcome.ExitCodes() {
		row := regexp.MustCompile(`\| \[` + "`" + string(o) + "`" + `\]\(#` + string(o) + `\) \| ` + strconv.Itoa(code) + `\b`)
		must.Same(t, true, row.Match(page), "the table lacks", o, "with exit status", code)
		if parts[string(o)] == "" {
			t.Errorf("there is no section on %s", o)
		}
	}
}

// TestDocsListEveryReason finds the reasons that stand in the code as
// literals.
func TestDocsListEveryReason(t *testing.T) {
	parts, seen := sections(t), 0
	for _, root := range []string{"../..", "../../../cmd"} {
		for _, stop := range stopsBelow(t, root) {
			seen++
			must.Contain(t, parts[stop.outcome], "| `"+stop.reason+"` |")
		}
	}
	if seen < 20 {
		t.Errorf("only %d reasons were found", seen)
	}
}

type stop struct{ outcome, reason, place string }

func stopsBelow(t *testing.T, root string) []stop {
	t.Helper()
	var stops []stop
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			o, ok := outcomeOf(call.Args[0])
			reason, isLiteral := call.Args[1].(*ast.BasicLit)
			if ok && isLiteral && reason.Kind == token.STRING {
				stops = append(stops, stop{o, strings.Trim(reason.Value, `"`), files.Position(call.Pos()).String()})
			}
			return true
		})
		return nil
	})
	must.Do(t, err)
	return stops
}

// outcomeOf is the outcome that an expression like outcome.NoChanges names.
func outcomeOf(e ast.Expr) (string, bool) {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	name := snake(selector.Sel.Name)
	_, known := outcome.ExitCodes()[outcome.Outcome(name)]
	return name, known
}

// snake is NoChanges as no_changes.
func snake(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}
