package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
)

// TestMessages writes what agent-ci says to people into one file, testdata/messages.txt: the sentence of each
// reason, the warnings, what rules and the proxy refuse, and the mistakes of a job. A person reads them all in
// ten minutes there.
func TestMessages(t *testing.T) {
	t.Parallel()
	const file = "testdata/messages.txt"
	sections := map[string][]string{}
	for _, folder := range []string{"cmd", "gitops", "policy", "runner", "tools"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			at := filepath.ToSlash(filepath.Dir(path))
			ast.Inspect(parsed, func(n ast.Node) bool {
				if section, message := messageOf(strings.TrimPrefix(at, "../../"), n); message != "" && !slices.Contains(sections[section], message) {
					sections[section] = append(sections[section], message)
				}
				return true
			})
			return nil
		})
		must.Do(t, err)
	}
	var got strings.Builder
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(&got, "# %s\n\n", section)
		for _, message := range slices.Sorted(slices.Values(sections[section])) {
			got.WriteString(message + "\n")
		}
		got.WriteString("\n")
	}
	golden.Compare(t, file, got.String()) // read the new ones aloud
	for _, section := range []string{"Outcomes", "Warnings", "Refusals", "Mistakes of a job"} {
		if len(sections[section]) < 20 {
			t.Errorf("there are only %d of %s", len(sections[section]), section)
		}
	}
}

// messageOf returns the message that a call in a package gives to people, and the section that it belongs to.
func messageOf(folder string, n ast.Node) (section, message string) {
	if pair, isPair := n.(*ast.KeyValueExpr); isPair && strings.HasPrefix(folder, "policy") {
		key, _ := pair.Key.(*ast.Ident)
		if text := words(pair.Value); key != nil && slices.Contains([]string{"Reason", "reason", "Remedy", "remedy", "Refusal"}, key.Name) && strings.Contains(text, " ") {
			return "Refusals", text
		}
	}
	if text := mistakeOf(n); folder == "runner/task/job" && strings.Contains(text, " ") {
		return "Mistakes of a job", text
	}
	if returned, is := n.(*ast.ReturnStmt); is && folder == "runner/task/config" && len(returned.Results) > 0 && strings.HasPrefix(words(returned.Results[0]), "must ") {
		return "Mistakes of a job", words(returned.Results[0])
	}
	call, isCall := n.(*ast.CallExpr)
	if !isCall {
		return "", ""
	}
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		if of, _ := f.X.(*ast.Ident); of == nil || of.Name != "lazyregexp" { // an expression is no message
			name = f.Sel.Name
		}
	}
	var texts []string
	for _, arg := range call.Args {
		texts = append(texts, words(arg))
	}
	prose := func(from int) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(texts[min(from, len(texts)):]), func(s string) bool { return s == "" || s == "…" }), " ")
	}
	switch {
	case name == "Stopf" && len(texts) > 2 && texts[2] != "":
		o, _ := call.Args[0].(*ast.SelectorExpr)
		if o == nil {
			return "Outcomes", "…/" + texts[1] + ": " + texts[2]
		}
		return "Outcomes", snake(o.Sel.Name) + "/" + texts[1] + ": " + texts[2]
	case slices.Contains([]string{"Warn", "warn", "warnInPull"}, name) && len(texts) > 1 && strings.Contains(prose(1), " "):
		return "Warnings", texts[0] + ": " + prose(1)
	case (name == "refuse" || name == "asRefusal") && strings.HasPrefix(folder, "policy") && strings.Contains(prose(0), " "):
		return "Refusals", prose(0)
	case slices.Contains([]string{"New", "Errorf", "ReportAtNode", "complain", "suggest", "wrong", "Report", "problemAt"}, name) && slices.Contains(configuration, folder) && strings.Contains(prose(0), " "):
		return "Mistakes of a job", prose(0)
	case name == "ReportIf" && strings.Contains(prose(2), " "):
		return "Mistakes of a job", prose(2)
	case name == "addError" && strings.Contains(prose(1), " "):
		return "Problems that doctor finds", prose(1)
	}
	return "", ""
}

// mistakeOf returns the message of a row of mistakes with its key, or a sentence that several rows share.
func mistakeOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if name, is := n.Type.(*ast.Ident); is && name.Name == "mistake" {
			return strings.TrimSpace(words(n.Elts[1]) + " " + words(n.Elts[2]))
		}
	case *ast.ValueSpec:
		if len(n.Values) == 1 && n.Type == nil {
			if literal, is := n.Values[0].(*ast.BasicLit); is && !strings.HasPrefix(words(literal), "{") { // no example
				return strings.TrimSpace(words(literal))
			}
		}
	}
	return ""
}

// configuration are the folders with mistakes of job and campaign files.
var configuration = []string{"runner/task/config", "runner/task/form", "runner/task/job", "runner/campaign/spec"}

var verbs = regexp.MustCompile(`%[+#]?[a-z]`)

// words returns the text of a literal, of several that are added, and of those in a composite literal, with "…"
// for what is put in.
func words(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return strings.ReplaceAll(verbs.ReplaceAllString(text, "…"), "\n", " ")
		}
	case *ast.BinaryExpr:
		left, right := words(e.X), words(e.Y)
		if left == "" && right == "" {
			return ""
		}
		return strings.ReplaceAll(orDots(left)+orDots(right), "……", "…")
	case *ast.CompositeLit:
		var all []string
		for _, element := range e.Elts {
			if pair, isPair := element.(*ast.KeyValueExpr); isPair {
				element = pair.Value
			}
			if text := words(element); strings.Contains(text, " ") {
				all = append(all, text)
			}
		}
		return strings.Join(all, " ")
	case *ast.CallExpr:
		for _, arg := range e.Args {
			if text := words(arg); strings.Contains(text, " ") {
				return text
			}
		}
	}
	return ""
}

func orDots(text string) string {
	if text == "" {
		return "…"
	}
	return text
}

// snake is NoChanges as no_changes.
func snake(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}
