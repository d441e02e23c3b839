package workflows

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/rhysd/actionlint"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// onBranch are events of a push or of its pull request that run the workflow and the files of the branch.
var onBranch = map[string]bool{"push": true, "create": true, "pull_request": true, "pull_request_review": true, "pull_request_review_comment": true}

// onDefault are events that may follow a push or its pull request and run the workflow of the default branch.
// Files of the change run there if a step checks the branch out.
var onDefault = map[string]bool{
	"pull_request_target": true, "issue_comment": true, "workflow_run": true, "check_run": true, "check_suite": true, "status": true, "label": true, "issues": true, "pull_request_comment": true,
}

// events names the events by which the branch starts a version of a workflow.
func (c Change) events(w *actionlint.Workflow, from origin) (names []string) {
	known := onBranch
	if from == ofBase {
		known = onDefault
	}
	for _, event := range w.On {
		name := strings.ToLower(event.EventName())
		if hook, is := event.(*actionlint.WebhookEvent); known[name] && (!is || c.takes(name, hook)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// takes says whether the filters of an event take the branch and the change.
func (c Change) takes(name string, hook *actionlint.WebhookEvent) bool {
	branch := c.BaseBranch
	if name == "push" {
		branch = c.Branch
		if hook.Branches.IsEmpty() && hook.BranchesIgnore.IsEmpty() && (!hook.Tags.IsEmpty() || !hook.TagsIgnore.IsEmpty()) {
			return false
		}
	}
	if name == "push" || strings.HasPrefix(name, "pull_request") {
		if !hook.Branches.IsEmpty() && !filter(hook.Branches, branch) || !hook.BranchesIgnore.IsEmpty() && filter(hook.BranchesIgnore, branch) {
			return false
		}
		if !hook.Paths.IsEmpty() && !slices.ContainsFunc(c.Paths, func(p string) bool { return filter(hook.Paths, p) }) {
			return false
		}
		if !hook.PathsIgnore.IsEmpty() && !slices.ContainsFunc(c.Paths, func(p string) bool { return !filter(hook.PathsIgnore, p) }) {
			return false
		}
	}
	return len(hook.Types) == 0 || slices.ContainsFunc(hook.Types, func(t *actionlint.String) bool { return t != nil && t.Value != "closed" && t.Value != "deleted" })
}

// filter says whether the patterns take a name. A later pattern counts more than an earlier one; ! takes names
// out. A pattern that cannot be read takes all.
func filter(f *actionlint.WebhookEventFilter, name string) (takes bool) {
	for _, value := range f.Values {
		if value == nil {
			continue
		}
		pattern, out := strings.CutPrefix(value.Value, "!")
		hit, err := doublestar.Match(pattern, name)
		if err != nil || strings.ContainsAny(pattern, "+?[") && !hit {
			hit = err != nil || looseMatch(pattern, name)
		}
		if hit {
			takes = !out
		}
	}
	return takes
}

// looseMatch is for ?, + and [] in patterns, which stand behind what they repeat.
func looseMatch(pattern, name string) bool {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `?`, `\+`, `+`, `\[`, `[`, `\]`, `]`).Replace(quoted)
	re, err := regexp.Compile(`^(?:` + quoted + `)$`)
	return err != nil || re.MatchString(name)
}

// takesHead says whether a job of a workflow of the default branch checks out what was pushed.
func takesHead(w *actionlint.Workflow, job *actionlint.Job) bool {
	if job.WorkflowCall != nil {
		return true // its steps are elsewhere
	}
	for _, text := range textsOf(job) {
		if head().MatchString(text) {
			return true
		}
	}
	return w.Env != nil && slices.ContainsFunc(textsOf(w.Env), head().MatchString)
}

// head is how steps name what was pushed.
var head = lazyregexp.New(`(?i)github\.(?:event\.pull_request\.(?:head|number|merge_commit)|head_ref|event\.(?:number|issue\.number|workflow_run\.(?:head|pull_requests)|check_(?:run|suite)\.head))|gh\s+pr\s+checkout|refs/pull/|pull/[^/\s]+/(?:head|merge)|hub\s+pr\s+checkout|github\.event\.client_payload|GITHUB_HEAD_REF`)

// never says whether a condition is false for the branch: one of its parts, joined by &&, names another branch,
// a tag or another event. Any other condition may be true.
func never(condition *actionlint.String, branch string, events []string) bool {
	if condition == nil {
		return false
	}
	text := strings.TrimSpace(condition.Value)
	if strings.HasPrefix(text, "${{") && strings.HasSuffix(text, "}}") {
		text = strings.TrimSpace(text[3 : len(text)-2])
	}
	if strings.Contains(text, "||") {
		return false
	}
	for part := range strings.SplitSeq(text, "&&") {
		part = strings.TrimSpace(part)
		if part == "false" || strings.HasPrefix(part, "startsWith(github.ref, 'refs/tags/") {
			return true
		}
		m := comparison().FindStringSubmatch(part)
		if m == nil {
			continue
		}
		switch key, value := strings.ToLower(m[1]), m[2]; key {
		case "github.ref":
			if value != "refs/heads/"+branch && !strings.HasPrefix(value, "refs/pull/") {
				return true
			}
		case "github.ref_name":
			if value != branch && !strings.HasSuffix(value, "/merge") {
				return true
			}
		case "github.event_name":
			if !slices.Contains(events, value) {
				return true
			}
		}
	}
	return false
}

var comparison = lazyregexp.New(`^\(?\s*(github\.(?:ref|ref_name|event_name))\s*==\s*'([^']*)'\s*\)?$`)
