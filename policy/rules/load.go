package rules

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/agent-ci/agent-ci/policy/shell"
)

// The limits of a rules file. Rules are data and stay far below.
const (
	maxBytes  = 256 << 10
	maxSteps  = 200_000
	maxTime   = 5 * time.Second
	maxRules  = 10_000  // of all files
	maxTokens = 200_000 // words in the patterns and examples of all files
)

// File is a rules file.
type File struct {
	Name string // for messages
	Data []byte
}

// Load parses rules files and runs their self-tests. The error joins one mistake for each invalid file.
func Load(files ...File) (*Set, error) {
	l := &loader{set: &Set{}}
	var mistakes []error
	for _, file := range files {
		if err := l.loadFile(file); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if len(mistakes) == 0 {
		mistakes = l.runExamples()
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return l.set, nil
}

// loader collects the rules of all files.
type loader struct {
	set      *Set
	examples []example
	tokens   int
}

// loadFile checks and runs a file. Its error begins with a place, as "name:line:column".
func (l *loader) loadFile(file File) error {
	if len(file.Data) > maxBytes {
		return fmt.Errorf("%s:1:1: the file is larger than %d KiB", file.Name, maxBytes>>10)
	}
	if line := firstTooNestedLine(file.Data); line > 0 {
		return fmt.Errorf("%s:%d:1: brackets are nested too deeply", file.Name, line)
	}
	options := &syntax.FileOptions{TopLevelControl: true, GlobalReassign: true}
	parsed, err := options.Parse(file.Name, file.Data, 0)
	if err != nil {
		return err
	}
	functions := l.functions()
	if err := checkOnlyData(parsed, functions); err != nil {
		return err
	}
	program, err := starlark.FileProgram(parsed, functions.Has)
	if err != nil {
		return err
	}
	return executeProgram(program, functions)
}

// executeProgram executes a parsed file up to maxSteps and maxTime.
func executeProgram(program *starlark.Program, functions starlark.StringDict) error {
	thread := &starlark.Thread{Print: func(*starlark.Thread, string) {}}
	thread.SetMaxExecutionSteps(maxSteps)
	timeout := time.AfterFunc(maxTime, func() { thread.Cancel("it takes too long") })
	defer timeout.Stop()
	_, err := program.Init(thread, functions)
	if failed, ok := errors.AsType[*starlark.EvalError](err); ok {
		return fmt.Errorf("%s: %s", callPosition(failed.CallStack), failed.Msg)
	}
	return err
}

// callPosition returns the call's position in the file: the innermost frame outside our functions.
func callPosition(stack starlark.CallStack) syntax.Position {
	for len(stack) > 1 && stack.At(0).Pos.Line == 0 {
		stack.Pop()
	}
	return stack.At(0).Pos
}

// firstTooNestedLine returns the first line with too many open brackets, or 0. The parser recurses for each
// bracket. Brackets in strings count too.
func firstTooNestedLine(data []byte) (line int) {
	const maxDepth = 100
	depth := 0
	line = 1
	for _, c := range data {
		switch c {
		case '\n':
			line++
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxDepth {
			return line
		}
	}
	return 0
}

// checkOnlyData accepts only descriptions of rules: calls of our functions, strings, numbers, lists,
// names and loops over lists. Without operators and own functions, a file cannot run long or grow
// large.
func checkOnlyData(file *syntax.File, functions starlark.StringDict) error {
	var found error
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil || found != nil {
			return false
		}
		if description := forbiddenNode(n, functions); description != "" {
			start, _ := n.Span()
			found = fmt.Errorf("%s: %s is not available in rules files, which are data: write the values out", start, description)
		}
		return found == nil
	})
	return found
}

// forbiddenNode names a forbidden node, or returns "".
func forbiddenNode(n syntax.Node, functions starlark.StringDict) string {
	switch n := n.(type) {
	case *syntax.File, *syntax.ExprStmt, *syntax.ForStmt, *syntax.BranchStmt, *syntax.Comprehension, *syntax.ForClause,
		*syntax.Ident, *syntax.Literal, *syntax.ListExpr, *syntax.TupleExpr, *syntax.ParenExpr:
		return ""
	case *syntax.AssignStmt:
		return forbiddenOperator(n.Op)
	case *syntax.BinaryExpr: // name = value, in a call
		return forbiddenOperator(n.Op)
	case *syntax.CallExpr:
		if name, ok := n.Fn.(*syntax.Ident); ok && functions.Has(name.Name) {
			return ""
		}
		return "a call of anything but prefix_rule, host_executable and network_rule"
	case *syntax.UnaryExpr:
		return forbiddenOperator(n.Op)
	case *syntax.LoadStmt:
		return "load"
	case *syntax.DefStmt, *syntax.LambdaExpr, *syntax.ReturnStmt:
		return "a function"
	case *syntax.DotExpr:
		return "a method"
	case *syntax.IfStmt, *syntax.IfClause, *syntax.CondExpr:
		return "a condition"
	case *syntax.WhileStmt:
		return "while"
	}
	return "this"
}

// forbiddenOperator names an operator other than =, or returns "".
func forbiddenOperator(op syntax.Token) string {
	if op == syntax.EQ {
		return ""
	}
	return "the operator " + op.String()
}

// example is a command that a rule must, or must not, match.
type example struct {
	ruleIndex int
	argv      []string
	mustMatch bool
}

// addExamples adds the examples in list to a rule. key is match or not_match.
func (l *loader) addExamples(rule int, key string, list *starlark.List) error {
	if list == nil {
		return nil
	}
	for i := range list.Len() {
		argv, err := l.parseExample(list.Index(i))
		if err != nil {
			return fmt.Errorf("%s[%d] %w", key, i, err)
		}
		l.examples = append(l.examples, example{rule, argv, key == "match"})
	}
	return nil
}

// parseExample parses the command of an example: a line of shell or a list of words.
func (l *loader) parseExample(value starlark.Value) ([]string, error) {
	if line, ok := starlark.AsString(value); ok {
		reading := shell.ReadScript(line)
		if len(reading.Plain) != 1 {
			return nil, fmt.Errorf("must be one plain command, as text or as a list of words, not %s", shortText(value))
		}
		return reading.Plain[0], l.countWords(len(reading.Plain[0]))
	}
	list, ok := value.(*starlark.List)
	if !ok || list.Len() == 0 {
		return nil, errors.New("must be a command, as text or as a list of words")
	}
	return l.parseTexts(list)
}

// runExamples runs the examples, each against its own rule alone.
func (l *loader) runExamples() []error {
	var mistakes []error
	for _, e := range l.examples {
		rule := l.set.rules[e.ruleIndex]
		onlyRule := &Set{rules: []Rule{rule}, executables: l.set.executables}
		matches := len(onlyRule.Match(e.argv)) > 0
		if matches == e.mustMatch {
			continue
		}
		problem := "the rule matches the example %q (not_match)"
		if e.mustMatch {
			problem = "the rule does not match its example %q (match)"
		}
		mistakes = append(mistakes, fmt.Errorf("%s:%d:1: "+problem, rule.At.File, rule.At.Line, strings.Join(e.argv, " ")))
	}
	return mistakes
}
