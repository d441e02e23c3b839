package forgetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

// publishedSchema is GitHub's GraphQL schema, reduced to the types that the forge supports.
//
//go:embed spec/github.graphql
var publishedSchema string

var graphQLSchema = sync.OnceValue(func() *ast.Schema {
	return gqlparser.MustLoadSchema(&ast.Source{Name: "github.graphql", Input: publishedSchema})
})

type graphQLRequest struct {
	Query     string
	Variables map[string]any
}

// answerGraphQL answers a query that is valid in GitHub's schema. It records an invalid one as
// undescribed.
func answerGraphQL(f *Forge, c *call) answer {
	switch c.credentials {
	case wrong:
		return badCredentials()
	case missing:
		return failure(http.StatusUnauthorized, "This endpoint requires you to be authenticated.")
	}
	var sent graphQLRequest
	if err := json.Unmarshal(c.body, &sent); err != nil {
		return failure(http.StatusBadRequest, "Problems parsing JSON")
	}
	document, problems := gqlparser.LoadQueryWithRules(graphQLSchema(), sent.Query, nil)
	if len(problems) > 0 || len(document.Operations) != 1 {
		return f.misunderstoodAnswer(fmt.Sprint(problems))
	}
	operation := document.Operations[0]
	variables, err := validator.VariableValues(graphQLSchema(), operation, sent.Variables)
	if err != nil {
		return f.misunderstoodAnswer(err.Error())
	}
	e := &execution{forge: f, variables: variables, tips: map[string]map[string]string{}}
	root := e.query()
	if operation.Operation == ast.Mutation {
		root = e.mutation()
	}
	body := object{"data": e.selectFields(root, operation.SelectionSet, nil)}
	if len(e.problems) > 0 {
		body["errors"] = e.problems
	}
	return ok(body)
}

func (f *Forge) misunderstoodAnswer(why string) answer {
	f.undescribed = append(f.undescribed, "POST "+graphQLPath+": "+why)
	return ok(object{"errors": []object{{"type": "undefinedField", "message": why, "locations": []object{{"line": 1, "column": 1}}}}})
}

// execution is the execution of one query.
type execution struct {
	forge     *Forge
	variables map[string]any
	problems  []object
	tips      map[string]map[string]string // commits by branch, by the folder of the repository
}

// node is a GraphQL object: the name of its type, and its fields. A field with arguments is a
// resolver.
type node struct {
	kind   string
	fields object
}

// resolver computes the value of a field from its arguments.
type resolver func(arguments object) any

// refusal is an error that takes the place of a field's value.
type refusal struct{ kind, message string }

// selectFields returns the fields of a node that a query asks for.
func (e *execution) selectFields(n *node, set ast.SelectionSet, path []any) object {
	shown := object{}
	for _, each := range set {
		switch s := each.(type) {
		case *ast.Field:
			at := append(append([]any{}, path...), s.Alias)
			shown[s.Alias] = e.value(e.field(n, s), s.SelectionSet, at)
		case *ast.InlineFragment:
			if s.TypeCondition == n.kind {
				maps.Copy(shown, e.selectFields(n, s.SelectionSet, path))
			}
		case *ast.FragmentSpread:
			maps.Copy(shown, e.selectFields(n, s.Definition.SelectionSet, path))
		}
	}
	return shown
}

// field returns the value of a field. It calls the resolver of a field with arguments.
func (e *execution) field(n *node, s *ast.Field) any {
	if s.Name == "__typename" {
		return n.kind
	}
	value := n.fields[s.Name]
	if resolve, has := value.(resolver); has {
		return resolve(s.ArgumentMap(e.variables))
	}
	return value
}

// value converts the value of a field for the reply. It records a refusal as a problem.
func (e *execution) value(value any, set ast.SelectionSet, path []any) any {
	switch v := value.(type) {
	case *node:
		if v == nil {
			return nil
		}
		return e.selectFields(v, set, path)
	case []*node:
		list := []any{}
		for i, each := range v {
			list = append(list, e.selectFields(each, set, append(append([]any{}, path...), i)))
		}
		return list
	case refusal:
		e.problems = append(e.problems, object{"type": v.kind, "path": path, "message": v.message, "locations": []object{{"line": 1, "column": 1}}})
		return nil
	}
	return value
}

func (e *execution) mutation() *node {
	return &node{"Mutation", object{
		"convertPullRequestToDraft":     resolver(func(a object) any { return e.setDraft(a, true) }),
		"markPullRequestReadyForReview": resolver(func(a object) any { return e.setDraft(a, false) }),
	}}
}

// setDraft makes a pull request a draft, or marks it as ready for review.
func (e *execution) setDraft(arguments object, draft bool) any {
	input, _ := arguments["input"].(object)
	id, _ := input["pullRequestId"].(string)
	r, i := e.forge.pullByNode(id)
	switch {
	case i == nil:
		return refusal{"NOT_FOUND", fmt.Sprintf("Could not resolve to a node with the global id of '%s'.", id)}
	case r.Archived:
		return refusal{"UNPROCESSABLE", "Repository was archived so is read-only."}
	case i.State != "open":
		return refusal{"UNPROCESSABLE", "The pull request is closed."}
	}
	i.pull.draft, i.updated = draft, e.forge.now()
	return &node{"", object{"pullRequest": e.pull(r, i), "clientMutationId": input["clientMutationId"]}}
}

// pullByNode returns a pull request by its node id, with its repository, or nil.
func (f *Forge) pullByNode(node string) (*Repository, *issue) {
	for _, r := range f.repositories {
		for _, i := range r.issues {
			if i.pull != nil && i.pull.nodeID == node {
				return r, i
			}
		}
	}
	return nil, nil
}
