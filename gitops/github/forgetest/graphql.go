package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
)

// mutations are those that the forge knows, with the draft state that they
// bring about.
var mutations = map[string]bool{
	"convertPullRequestToDraft":     true,
	"markPullRequestReadyForReview": false,
}

var (
	mutationName = regexp.MustCompile(`\b(convertPullRequestToDraft|markPullRequestReadyForReview)\b`)
	viewerQuery  = regexp.MustCompile(`\bviewer\s*\{\s*login\s*\}`)
	nodeArgument = regexp.MustCompile(`pullRequestId\s*:\s*(?:\$(\w+)|"([^"]*)")`)
)

type graphQLRequest struct {
	Query     string
	Variables map[string]any
}

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
	if viewerQuery.MatchString(sent.Query) {
		return ok(object{"data": object{"viewer": object{"login": f.user.Login}}})
	}
	name := mutationName.FindString(sent.Query)
	if name == "" {
		return graphQLFailure("", "undefinedField", "The forge knows of no such query.")
	}
	node := sent.node()
	r, i := f.pullByNode(node)
	switch {
	case i == nil:
		return graphQLFailure(name, "NOT_FOUND", fmt.Sprintf("Could not resolve to a node with the global id of '%s'.", node))
	case r.Archived:
		return graphQLFailure(name, "UNPROCESSABLE", "Repository was archived so is read-only.")
	case i.State != "open":
		return graphQLFailure(name, "UNPROCESSABLE", "The pull request is closed.")
	}
	i.pull.draft, i.updated = mutations[name], f.now()
	shown := object{"id": node, "number": i.Number, "isDraft": i.pull.draft}
	return ok(object{"data": object{name: object{"pullRequest": shown}}})
}

// node is the id in the query itself, in a variable of its own, or in one with
// the whole input.
func (g graphQLRequest) node() string {
	if found := nodeArgument.FindStringSubmatch(g.Query); found != nil {
		if found[2] != "" {
			return found[2]
		}
		id, _ := g.Variables[found[1]].(string)
		return id
	}
	input, _ := g.Variables["input"].(object)
	id, _ := input["pullRequestId"].(string)
	return id
}

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

// graphQLFailure comes with status 200, as each answer to a query that could
// be read.
func graphQLFailure(name, kind, message string) answer {
	problem := object{"type": kind, "message": message, "locations": []object{{"line": 1, "column": 1}}}
	body := object{"errors": []object{problem}}
	if name != "" {
		problem["path"] = []string{name}
		body["data"] = object{name: nil}
	}
	return ok(body)
}
