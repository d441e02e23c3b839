package workflows

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// branchEvents has the events of a push or its pull request that run the branch's version of a workflow.
var branchEvents = map[string]bool{"push": true, "create": true, "pull_request": true, "pull_request_review": true, "pull_request_review_comment": true}

// defaultBranchEvents has events that may follow a push or its pull request and run the default branch's
// version of a workflow. Changed files run there only if a step checks the branch out.
var defaultBranchEvents = map[string]bool{
	"pull_request_target": true, "issue_comment": true, "workflow_run": true, "check_run": true, "check_suite": true, "status": true, "label": true, "issues": true, "pull_request_comment": true,
}

// triggeredEvents returns the workflow's events that the pushed branch or its pull request triggers. For
// some events GitHub runs the branch's version of a workflow, for others the default branch's. from
// says which version w is.
func (c Change) triggeredEvents(w workflow, from origin) (names []string) {
	known := branchEvents
	if from == ofBase {
		known = defaultBranchEvents
	}
	for _, event := range w.On {
		name := strings.ToLower(event.EventName())
		if !known[name] || slices.Contains(names, name) {
			continue
		}
		if hook, hasFilters := event.(*actionlint.WebhookEvent); !hasFilters || c.acceptsChange(name, hook) {
			names = append(names, name)
		}
	}
	return names
}

// acceptsChange reports whether the filters of an event accept the branch and the changed paths.
func (c Change) acceptsChange(name string, hook *actionlint.WebhookEvent) bool {
	accepts := true
	switch {
	case name == "push":
		accepts = !isForTagsOnly(hook) && acceptsBranch(hook, c.Branch) && acceptsPaths(hook, c.Paths)
	case strings.HasPrefix(name, "pull_request"):
		accepts = acceptsBranch(hook, c.BaseBranch) && acceptsPaths(hook, c.Paths)
	}
	if !accepts {
		return false
	}
	isStart := func(t *actionlint.String) bool { return t != nil && t.Value != "closed" && t.Value != "deleted" }
	return len(hook.Types) == 0 || slices.ContainsFunc(hook.Types, isStart)
}

// isForTagsOnly reports whether a push event has filters for tags and none for branches.
func isForTagsOnly(hook *actionlint.WebhookEvent) bool {
	hasBranches := !hook.Branches.IsEmpty() || !hook.BranchesIgnore.IsEmpty()
	hasTags := !hook.Tags.IsEmpty() || !hook.TagsIgnore.IsEmpty()
	return hasTags && !hasBranches
}

// acceptsBranch reports whether the branch filters of an event accept a branch.
func acceptsBranch(hook *actionlint.WebhookEvent, branch string) bool {
	if !hook.Branches.IsEmpty() && !matches(hook.Branches, branch) {
		return false
	}
	return hook.BranchesIgnore.IsEmpty() || !ignores(hook.BranchesIgnore, branch)
}

// acceptsPaths reports whether one of the paths triggers the event.
func acceptsPaths(hook *actionlint.WebhookEvent, paths []string) bool {
	if !hook.Paths.IsEmpty() && !slices.ContainsFunc(paths, func(p string) bool { return matches(hook.Paths, p) }) {
		return false
	}
	return hook.PathsIgnore.IsEmpty() || slices.ContainsFunc(paths, func(p string) bool { return !ignores(hook.PathsIgnore, p) })
}

// matches reports whether a name may fit a list of patterns. The last matching pattern decides; one with "!"
// rejects.
func matches(f *actionlint.WebhookEventFilter, name string) (matched bool) {
	for _, value := range f.Values {
		if value == nil {
			continue
		}
		if pattern, isNegated := strings.CutPrefix(value.Value, "!"); isNegated {
			matched = matched && !mustMatch(pattern, name)
			continue
		}
		hit, err := pathname.MatchGlob(value.Value, name)
		matched = matched || hit || err != nil || matchesLoosely(value.Value, name)
	}
	return matched
}

// ignores reports whether a name must fit one of the patterns.
func ignores(f *actionlint.WebhookEventFilter, name string) bool {
	return slices.ContainsFunc(f.Values, func(value *actionlint.String) bool { return value != nil && mustMatch(value.Value, name) })
}

// mustMatch reports whether a name fits a pattern. It reports false for a pattern that GitHub may read in
// another way.
func mustMatch(pattern, name string) bool {
	hit, err := pathname.MatchGlob(pattern, name)
	return hit && err == nil && !strings.ContainsAny(pattern, `+?[{\`)
}

// matchesLoosely reports whether a name may fit a pattern with ?, + or [], where ? and + repeat the character before. A
// pattern that cannot be read may fit any name.
func matchesLoosely(pattern, name string) bool {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `?`, `\+`, `+`, `\[`, `[`, `\]`, `]`).Replace(quoted)
	re, err := regexp.Compile(`^(?:` + quoted + `)$`)
	return err != nil || re.MatchString(name)
}

// checksOutHead reports whether a job of the default branch's workflow checks out what was pushed.
func (w workflow) checksOutHead(id string) bool {
	if w.Jobs[id].WorkflowCall != nil {
		return true // the steps are in another workflow
	}
	return slices.ContainsFunc(w.textsOf(id), namesHead().MatchString)
}

// namesHead matches expressions and commands that name what was pushed.
var namesHead = lazyregexp.New(`(?i)github\.(?:event\.pull_request\.(?:head|number|merge_commit)|head_ref|event\.(?:number|issue\.number|workflow_run\.(?:head|pull_requests)|check_(?:run|suite)\.head))|gh\s+pr\s+checkout|refs/pull/|pull/[^/\s]+/(?:head|merge)|hub\s+pr\s+checkout|github\.event\.client_payload|GITHUB_HEAD_REF`)

// trigger has the facts about a run that a job's condition may ask for.
type trigger struct {
	branch string // the branch of the run; "" if it depends on the event
	events []string
}

// excludes reports whether a job's condition is certainly false.
func (t trigger) excludes(condition *actionlint.String) bool {
	if condition == nil {
		return false
	}
	text := condition.Value
	if inner, found := strings.CutPrefix(text, "${{"); found && strings.HasSuffix(inner, "}}") {
		text = strings.TrimSuffix(inner, "}}")
	}
	// An expression with any text around it, even a line end, is a non-empty text, and so true.
	if strings.Contains(text, "${{") || strings.Contains(text, "}}") {
		return false
	}
	// The lexer expects the end of an expression.
	expression, err := actionlint.NewExprParser().Parse(actionlint.NewExprLexer(text + "}}"))
	return err == nil && t.isFalse(expression)
}

// isFalse reports whether an expression is certainly false. Unknown expressions may be true.
func (t trigger) isFalse(expression actionlint.ExprNode) bool {
	switch e := expression.(type) {
	case *actionlint.BoolNode:
		return !e.Value
	case *actionlint.LogicalOpNode:
		if e.Kind == actionlint.LogicalOpNodeKindAnd {
			return t.isFalse(e.Left) || t.isFalse(e.Right)
		}
		return t.isFalse(e.Left) && t.isFalse(e.Right)
	case *actionlint.FuncCallNode:
		// The ref is always a branch here.
		if strings.EqualFold(e.Callee, "startsWith") && len(e.Args) == 2 && githubKey(e.Args[0]) == "ref" {
			prefix, isText := e.Args[1].(*actionlint.StringNode)
			return isText && strings.HasPrefix(strings.ToLower(prefix.Value), "refs/tags/")
		}
	case *actionlint.CompareOpNode:
		value, isText := e.Right.(*actionlint.StringNode)
		return e.Kind == actionlint.CompareOpNodeKindEq && isText && t.isOtherValue(githubKey(e.Left), value.Value)
	}
	return false
}

// isOtherValue reports whether the field github.KEY certainly differs from value. GitHub ignores case. The
// ref of a pull request is refs/pull/NUMBER/merge.
func (t trigger) isOtherValue(key, value string) bool {
	lower := strings.ToLower(value)
	switch key {
	case "ref":
		return t.branch != "" && !strings.EqualFold(value, "refs/heads/"+t.branch) && !strings.HasPrefix(lower, "refs/pull/")
	case "ref_name":
		return t.branch != "" && !strings.EqualFold(value, t.branch) && !strings.HasSuffix(lower, "/merge")
	case "event_name":
		return !slices.Contains(t.events, lower)
	}
	return false
}

// githubKey returns KEY for an expression github.KEY, or "" for another one.
func githubKey(expression actionlint.ExprNode) string {
	if e, isKey := expression.(*actionlint.ObjectDerefNode); isKey {
		if of, isVariable := e.Receiver.(*actionlint.VariableNode); isVariable && of.Name == "github" {
			return e.Property
		}
	}
	return ""
}
