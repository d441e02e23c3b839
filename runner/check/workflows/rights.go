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
	secrets map[string]bool
	writes  []string // "contents: write"
	unknown bool     // the repository's settings decide about permissions
}

func (r *rights) add(names ...string) {
	if r.secrets == nil {
		r.secrets = map[string]bool{}
	}
	for _, name := range names {
		r.secrets[name] = true
	}
}

func (r *rights) names() []string { return slices.Sorted(maps.Keys(r.secrets)) }

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
		conditions := expressions().FindAllString(text, -1)
		for _, expression := range append(conditions, bare(text)) {
			for _, m := range secretName().FindAllStringSubmatch(expression, -1) {
				if name := strings.ToUpper(m[1] + m[2]); name != "GITHUB_TOKEN" { // the rights of GITHUB_TOKEN are the permissions
					r.add(name)
				}
			}
			if anySecret().MatchString(expression) {
				r.add(allSecrets)
			}
		}
	}
	if job.WorkflowCall != nil && job.WorkflowCall.InheritSecrets {
		r.add(allSecrets)
	}
	permissions := job.Permissions
	if permissions == nil {
		permissions = w.Permissions
	}
	if permissions == nil {
		r.unknown = true
		return r
	}
	if permissions.All != nil && permissions.All.Value == "write-all" {
		r.writes = []string{"write-all"}
	}
	for name, scope := range permissions.Scopes {
		if scope != nil && scope.Value != nil && scope.Value.Value == "write" {
			r.writes = append(r.writes, name+": write")
		}
	}
	slices.Sort(r.writes)
	return r
}

// bare returns a text if it may be an expression without ${{ }}, as in conditions, or "".
func bare(text string) string {
	if strings.Contains(text, "${{") || strings.ContainsRune(text, '\n') {
		return ""
	}
	return text
}

// textsOf returns all strings in a part of a workflow.
func textsOf(part any) (all []string) {
	seen := map[uintptr]bool{}
	var collect func(v reflect.Value, depth int)
	collect = func(v reflect.Value, depth int) {
		const deepest = 30
		if depth > deepest || !v.IsValid() {
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] {
				return
			}
			seen[v.Pointer()] = true
			if s, is := v.Interface().(*actionlint.String); is {
				all = append(all, s.Value)
				return
			}
			collect(v.Elem(), depth+1)
		case reflect.Interface:
			collect(v.Elem(), depth+1)
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					collect(v.Field(i), depth+1)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				collect(v.Index(i), depth+1)
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				collect(v.MapIndex(key), depth+1)
			}
		}
	}
	collect(reflect.ValueOf(part), 0)
	return all
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}
