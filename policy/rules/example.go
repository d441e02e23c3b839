package rules

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/agent-ci/agent-ci/policy/shell"
)

// example is a command that a rule must match, or must not.
type example struct {
	rule int
	argv []string
	want bool
}

// addExamples reads match or not_match: commands, each a line or a list of
// words.
func (l *loader) addExamples(rule int, key string, list *starlark.List) error {
	if list == nil {
		return nil
	}
	for i := range list.Len() {
		argv, err := l.exampleOf(list.Index(i))
		if err != nil {
			return fmt.Errorf("%s[%d] %w", key, i, err)
		}
		l.examples = append(l.examples, example{rule, argv, key == "match"})
	}
	return nil
}

func (l *loader) exampleOf(value starlark.Value) ([]string, error) {
	if line, ok := starlark.AsString(value); ok {
		reading := shell.ReadScript(line)
		if len(reading.Plain) != 1 {
			return nil, fmt.Errorf("must be one plain command, as text or as a list of words, not %s", shown(value))
		}
		return reading.Plain[0], l.count(len(reading.Plain[0]))
	}
	list, ok := value.(*starlark.List)
	if !ok || list.Len() == 0 {
		return nil, errors.New("must be a command, as text or as a list of words")
	}
	return l.texts(list)
}

// test runs the examples, each against its own rule alone.
func (l *loader) test() []error {
	var mistakes []error
	for _, e := range l.examples {
		rule := l.set.Rules[e.rule]
		alone := &Set{Rules: []Rule{rule}, Hosts: l.set.Hosts}
		alone.index()
		switch matches := len(alone.Match(e.argv)) > 0; {
		case e.want && !matches:
			mistakes = append(mistakes, &Error{rule.At.File, rule.At.Line, 1, fmt.Sprintf("the rule does not match its example %q (match)", strings.Join(e.argv, " "))})
		case !e.want && matches:
			mistakes = append(mistakes, &Error{rule.At.File, rule.At.Line, 1, fmt.Sprintf("the rule matches the example %q (not_match)", strings.Join(e.argv, " "))})
		}
	}
	return mistakes
}
