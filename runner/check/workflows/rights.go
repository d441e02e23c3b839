package workflows

import (
	"cmp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

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

// rightsOf returns the rights of a job: the secrets in its texts, and its permissions or else those of the workflow.
func (w workflow) rightsOf(id string) *rights {
	r, job := newRights(), w.Jobs[id]
	for _, text := range w.textsOf(id) {
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

// textsOf returns the texts of a job and of the workflow's env.
func (w workflow) textsOf(id string) []string {
	return append(textsIn(valueOf(valueOf(w.root, "jobs"), id)), textsIn(valueOf(w.root, "env"))...)
}

// valueOf returns the value of a key in a mapping, or nil. actionlint has the ids of jobs in small letters.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for mapping != nil && mapping.Kind == yaml.AliasNode {
		mapping = mapping.Alias
	}
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for pair := range slices.Chunk(mapping.Content, 2) {
		if strings.EqualFold(pair[0].Value, key) {
			return pair[1]
		}
	}
	return nil
}

// textsIn returns the texts in YAML, with aliases expanded.
func textsIn(n *yaml.Node) (all []string) {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.AliasNode:
		return textsIn(n.Alias)
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}
	}
	for _, below := range n.Content {
		all = append(all, textsIn(below)...)
	}
	return all
}
