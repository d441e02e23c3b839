package job

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// plainMatcher recognises Claude Code matchers that are names, not regular expressions.
var plainMatcher = lazyregexp.New(`^[A-Za-z0-9_| -]*$`)

// FitsTools reports whether one of a hook's matchers fits one of a tool's names. An empty list fits all tools.
func FitsTools(matchers []string, names ...string) bool {
	return len(matchers) == 0 || slices.ContainsFunc(matchers, func(matcher string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return fitsMatcher(matcher, name) })
	})
}

// fitsMatcher reports whether a Claude Code matcher fits name. A matcher is a list of names separated
// by |, or a regular expression for part of the name. "*" and "" fit all names.
func fitsMatcher(matcher, name string) bool {
	switch {
	case matcher == "*", matcher == "":
		return true
	case !plainMatcher().MatchString(matcher):
		expression, err := regexp.Compile(matcher)
		return err != nil || expression.MatchString(name) // one that can't be read is refused before
	}
	return slices.ContainsFunc(strings.Split(matcher, "|"), func(entry string) bool { return strings.TrimSpace(entry) == name })
}

// matcherMistake returns a message for an unusable matcher, or "". jobTools holds the names of the job's
// own tools. complete is false if the job is not fully known and may have more.
func matcherMistake(matcher string, jobTools []string, complete bool) string {
	if !plainMatcher().MatchString(matcher) && matcher != "*" {
		if _, err := regexp.Compile(matcher); err != nil {
			return "is no regular expression (" + err.Error() + ")"
		}
	}
	known := slices.Clone(jobTools)
	for _, tool := range dialect.Tools {
		known = append(known, tool.Matched()...)
	}
	mayFitServers := strings.Contains(matcher, "mcp") // their tools are not known yet
	if mayFitServers || slices.ContainsFunc(known, func(name string) bool { return fitsMatcher(matcher, name) }) {
		return ""
	}
	never := "fits no tool, so that the hook would never be asked"
	for _, name := range known {
		switch {
		case strings.EqualFold(matcher, name):
			return never + "; say " + name
		case strings.HasPrefix(matcher, name+"("):
			return never + "; say " + name + ", and the words of commands as argv"
		}
	}
	if !complete && plainMatcher().MatchString(matcher) {
		return "" // it may be a tool of a job that is not known here
	}
	return never
}

// checkMatchers rejects matchers that fit no tool.
func (d *validator) checkMatchers(place string, h Hook) {
	var jobTools []string
	for _, tool := range d.job.Tools.Dynamic {
		jobTools = append(jobTools, tool.Name)
	}
	for i, matcher := range h.Tools {
		if wrong := matcherMistake(matcher, jobTools, d.HasLayer(config.FileLayer)); wrong != "" {
			d.Report(config.JoinPath(place, "tools", i), `"`+matcher+`" `+wrong)
		}
	}
}

// matchesCommands reports whether the hook applies to any tool that runs commands.
func (h Hook) matchesCommands() bool {
	return slices.ContainsFunc(dialect.Tools, func(t dialect.Tool) bool { return t.Kind == dialect.Commands && FitsTools(h.Tools, t.Matched()...) })
}
