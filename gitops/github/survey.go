package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Survey asks GraphQL, which answers all questions of one call in one request.
func (c *Client) Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error) {
	what := call{doing: fmt.Sprintf("look at %d repositories", len(questions)), permission: "metadata: read"}
	var all []forge.Finding
	for len(questions) > 0 {
		part := questions[:min(len(questions), forge.MaxSurvey)]
		questions = questions[len(part):]
		found, err := c.survey(ctx, what, part)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// surveyed is one repository as GraphQL tells of it.
type surveyed struct {
	NameWithOwner    string `json:"nameWithOwner"`
	IsArchived       bool   `json:"isArchived"`
	ViewerPermission string `json:"viewerPermission"`
	DefaultBranchRef *reference
	Asked            *reference
	Commit           *struct{ OID string }
	Issue            *struct{ State string }
	PullRequest      *struct{ State string }
	PullRequests     struct {
		Nodes []struct {
			Number int
			URL    string
		}
	}
}

type reference struct {
	Name   string
	Target struct{ OID string }
}

func (c *Client) survey(ctx context.Context, what call, questions []forge.Question) ([]forge.Finding, error) {
	var query strings.Builder
	query.WriteString("query {\n")
	for i, q := range questions {
		writeQuestion(&query, i, q)
	}
	query.WriteString("}\n")
	var reply struct {
		Data   map[string]*surveyed
		Errors []graphQLError
	}
	if err := c.send(ctx, http.MethodPost, c.graphQL, map[string]any{"query": query.String()}, &reply); err != nil {
		return nil, c.failed(ctx, what, err)
	}
	for _, e := range reply.Errors {
		if e.Type != "NOT_FOUND" { // what is not there is null, too
			return nil, c.refused(what, reply.Errors)
		}
	}
	all := make([]forge.Finding, len(questions))
	for i, q := range questions {
		if s := reply.Data[alias(i)]; s != nil {
			all[i] = s.finding(q)
		}
	}
	return all, nil
}

func alias(i int) string { return fmt.Sprintf("q%d", i) }

// writeQuestion writes the part of a query that answers one question. Texts are JSON strings, which
// GraphQL's are: https://spec.graphql.org/October2021/#sec-String-Value
func writeQuestion(w *strings.Builder, i int, q forge.Question) {
	owner, name, _ := strings.Cut(q.Repository, "/")
	fmt.Fprintf(w, "%s: repository(owner: %s, name: %s) { nameWithOwner isArchived viewerPermission defaultBranchRef { name target { oid } }", alias(i), quoted(owner), quoted(name))
	if q.Branch != "" {
		fmt.Fprintf(w, " asked: ref(qualifiedName: %s) { name target { oid } }", quoted("refs/heads/"+q.Branch))
	}
	if q.Commit != "" {
		fmt.Fprintf(w, " commit: object(oid: %s) { oid }", quoted(q.Commit))
	}
	if q.Issue > 0 {
		fmt.Fprintf(w, " issue(number: %d) { state }", q.Issue)
	}
	if q.Pull > 0 {
		fmt.Fprintf(w, " pullRequest(number: %d) { state }", q.Pull)
	}
	if q.Head != "" {
		fmt.Fprintf(w, " pullRequests(headRefName: %s, states: [OPEN], first: 1) { nodes { number url } }", quoted(q.Head))
	}
	w.WriteString(" }\n")
}

func quoted(text string) string {
	raw, err := json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		panic(err) // a text
	}
	return string(raw)
}

// mayPush are the permissions with which a token may push.
var mayPush = map[string]bool{"ADMIN": true, "MAINTAIN": true, "WRITE": true}

func (s *surveyed) finding(q forge.Question) forge.Finding {
	f := forge.Finding{Found: true, Repository: s.NameWithOwner, Archived: s.IsArchived, CanWrite: mayPush[s.ViewerPermission], HasCommit: s.Commit != nil}
	at := s.DefaultBranchRef
	if q.Branch != "" {
		at, f.Branch = s.Asked, q.Branch
	}
	if at != nil {
		f.Branch, f.Tip = at.Name, at.Target.OID
	}
	if s.Issue != nil {
		f.IssueState = strings.ToLower(s.Issue.State)
	}
	if s.PullRequest != nil {
		f.PullState = strings.ToLower(s.PullRequest.State)
	}
	if nodes := s.PullRequests.Nodes; len(nodes) > 0 {
		f.Open = &forge.OpenPull{Number: nodes[0].Number, URL: nodes[0].URL}
	}
	return f
}
