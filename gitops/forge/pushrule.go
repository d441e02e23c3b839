package forge

import (
	"regexp"
	"strings"
)

// PushRule is a rule of a repository about pushes to a branch.
type PushRule struct {
	Kind    string // creation, update, required_signatures, …, as GitHub names them
	Setting string // the setting that contains the rule, for messages
	// NotOnCreation means that the rule does not apply to new branches.
	NotOnCreation bool
	Pattern       Pattern // for kinds of rules with a pattern
}

// Pattern is a rule's pattern for a text.
type Pattern struct {
	Operator string // starts_with, ends_with, contains, regex
	Text     string
	Negate   bool // the text must not match
}

// Refuses reports whether the pattern forbids a text: one that does not match, or with Negate, one that
// matches. An invalid or unknown pattern forbids nothing.
func (p Pattern) Refuses(text string) bool {
	matches := false
	switch p.Operator {
	case "starts_with":
		matches = strings.HasPrefix(text, p.Text)
	case "ends_with":
		matches = strings.HasSuffix(text, p.Text)
	case "contains":
		matches = strings.Contains(text, p.Text)
	case "regex":
		expression, err := regexp.Compile(p.Text)
		if err != nil {
			return false
		}
		matches = expression.MatchString(text)
	default:
		return false
	}
	return matches == p.Negate
}

// String describes the pattern, as in "that start with x".
func (p Pattern) String() string {
	verb := map[string]string{"starts_with": "start with", "ends_with": "end with", "contains": "contain", "regex": "match"}[p.Operator]
	if p.Negate {
		verb = "do not " + verb
	}
	return "that " + verb + " " + p.Text
}
