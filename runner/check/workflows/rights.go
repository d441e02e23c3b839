package workflows

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/rhysd/actionlint"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// rights are the secrets and permissions of a job's steps.
type rights struct {
	secrets            map[string]bool // names
	writes             map[string]bool // permissions such as "contents: write"
	defaultPermissions bool            // the repository's settings decide about permissions
}

func newRights() *rights { return &rights{secrets: map[string]bool{}, writes: map[string]bool{}} }

// allSecrets is the entry for secrets that are not named.
const allSecrets = "all secrets"

// These match secrets in expressions, by name and in other ways.
var (
	secretName  = lazyregexp.New(`(?i)\bsecrets\s*(?:\.\s*([A-Z_][A-Z0-9_]*)|\[\s*'([^']+)'\s*\])`)
	anySecret   = lazyregexp.New(`(?i)\bsecrets\s*(?:\)|\[\s*[^'\s\]]|\.\s*\*)`)
	expressions = lazyregexp.New(`(?s)\$\{\{.*?\}\}`)
)

// rightsOf returns the rights of a job of the workflow w: the secrets in its texts, and the permissions of the job
// or else of the workflow.
func rightsOf(w *actionlint.Workflow, job *actionlint.Job) *rights {
	r := newRights()
	for _, text := range textsOf(job, w.Env) {
		for _, expression := range append(expressions().FindAllString(text, -1), unwrappedExpression(text)) {
			r.addSecretsIn(expression)
		}
	}
	if job.WorkflowCall != nil && job.WorkflowCall.InheritSecrets {
		r.secrets[allSecrets] = true
	}
	permissions := cmp.Or(job.Permissions, w.Permissions)
	if permissions == nil {
		r.defaultPermissions = true
		return r
	}
	if permissions.All != nil && permissions.All.Value == "write-all" {
		r.writes["write-all"] = true
	}
	for name, scope := range permissions.Scopes {
		if scope != nil && scope.Value != nil && scope.Value.Value == "write" {
			r.writes[name+": write"] = true
		}
	}
	return r
}

// addSecretsIn adds the secrets that an expression uses, such as secrets.KEY and secrets['KEY']. GITHUB_TOKEN is none
// of them: its rights are the permissions. It adds allSecrets for uses that name no secret, such as toJSON(secrets).
func (r *rights) addSecretsIn(expression string) {
	for _, m := range secretName().FindAllStringSubmatch(expression, -1) {
		if name := strings.ToUpper(m[1] + m[2]); name != "GITHUB_TOKEN" {
			r.secrets[name] = true
		}
	}
	if anySecret().MatchString(expression) {
		r.secrets[allSecrets] = true
	}
}

// unwrappedExpression returns a text that may be an expression without ${{ }}, as in conditions, or "".
func unwrappedExpression(text string) string {
	if strings.Contains(text, "${{") || strings.ContainsRune(text, '\n') {
		return ""
	}
	return text
}

// textsOf returns all strings in parts of a workflow.
func textsOf(parts ...any) []string {
	c := textCollector{seen: map[uintptr]bool{}}
	for _, part := range parts {
		c.collect(reflect.ValueOf(part), 0)
	}
	return c.texts
}

// textCollector collects the strings of values that may refer to each other.
type textCollector struct {
	texts []string
	seen  map[uintptr]bool // pointers that were followed
}

// collect adds the strings in a value, up to a depth.
func (c *textCollector) collect(v reflect.Value, depth int) {
	const deepest = 30
	if depth > deepest || !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || c.seen[v.Pointer()] {
			return
		}
		c.seen[v.Pointer()] = true
		if s, found := v.Interface().(*actionlint.String); found {
			c.texts = append(c.texts, s.Value)
			return
		}
		c.collect(v.Elem(), depth+1)
	case reflect.Interface:
		c.collect(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.collect(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.collect(v.Index(i), depth+1)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.collect(v.MapIndex(key), depth+1)
		}
	}
}
