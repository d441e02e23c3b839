package workflows

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// rights are the secrets and permissions of a job's steps.
type rights struct {
	secrets            map[string]bool
	writes             []string // "contents: write"
	defaultPermissions bool     // the repository's settings decide about permissions
}

// addSecrets adds names of secrets.
func (r *rights) addSecrets(names ...string) {
	if r.secrets == nil {
		r.secrets = map[string]bool{}
	}
	for _, name := range names {
		r.secrets[name] = true
	}
}

// secretNames returns the sorted names of the secrets.
func (r *rights) secretNames() []string { return slices.Sorted(maps.Keys(r.secrets)) }

// allSecrets is the entry for secrets that are not named.
const allSecrets = "all secrets"

// These match secrets in expressions, by name and in other ways.
var (
	secretName  = lazyregexp.New(`(?i)\bsecrets\s*(?:\.\s*([A-Z_][A-Z0-9_]*)|\[\s*'([^']+)'\s*\])`)
	anySecret   = lazyregexp.New(`(?i)\bsecrets\s*(?:\)|\[\s*[^'\s\]]|\.\s*\*)`)
	expressions = lazyregexp.New(`(?s)\$\{\{.*?\}\}`)
)

// rightsOf returns the rights of a job.
func rightsOf(w *actionlint.Workflow, job *actionlint.Job) rights {
	var r rights
	texts := textsOf(job)
	if w.Env != nil {
		texts = append(texts, textsOf(w.Env)...)
	}
	for _, text := range texts {
		for _, expression := range append(expressions().FindAllString(text, -1), unwrappedExpression(text)) {
			r.addSecrets(secretsIn(expression)...)
		}
	}
	if job.WorkflowCall != nil && job.WorkflowCall.InheritSecrets {
		r.addSecrets(allSecrets)
	}
	permissions := job.Permissions
	if permissions == nil {
		permissions = w.Permissions
	}
	if permissions == nil {
		r.defaultPermissions = true
		return r
	}
	r.writes = writesOf(permissions)
	return r
}

// secretsIn returns the names of the secrets that an expression uses. GITHUB_TOKEN is none of them:
// its rights are the permissions.
func secretsIn(expression string) (names []string) {
	for _, m := range secretName().FindAllStringSubmatch(expression, -1) {
		if name := strings.ToUpper(m[1] + m[2]); name != "GITHUB_TOKEN" {
			names = append(names, name)
		}
	}
	if anySecret().MatchString(expression) {
		names = append(names, allSecrets)
	}
	return names
}

// writesOf returns the write permissions, such as "contents: write".
func writesOf(permissions *actionlint.Permissions) (writes []string) {
	if permissions.All != nil && permissions.All.Value == "write-all" {
		writes = []string{"write-all"}
	}
	for name, scope := range permissions.Scopes {
		if scope != nil && scope.Value != nil && scope.Value.Value == "write" {
			writes = append(writes, name+": write")
		}
	}
	slices.Sort(writes)
	return writes
}

// unwrappedExpression returns a text that may be an expression without ${{ }}, as in conditions, or "".
func unwrappedExpression(text string) string {
	if strings.Contains(text, "${{") || strings.ContainsRune(text, '\n') {
		return ""
	}
	return text
}

// textsOf returns all strings in a part of a workflow.
func textsOf(part any) []string {
	c := textCollector{seen: map[uintptr]bool{}}
	c.collect(reflect.ValueOf(part), 0)
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

// sortedUnion returns the sorted elements of both slices, each once.
func sortedUnion(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}
