package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// Survey answers the questions, with one GraphQL request for up to forge.MaxSurvey of them.
func (c *Client) Survey(ctx context.Context, questions []forge.Question) ([]forge.Finding, error) {
	call := apiCall{action: fmt.Sprintf("look at %d repositories", len(questions)), permission: "metadata: read"}
	var all []forge.Finding
	for len(questions) > 0 {
		part := questions[:min(len(questions), forge.MaxSurvey)]
		questions = questions[len(part):]
		found, err := c.surveyOnce(ctx, call, part)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// repositoryReply is the reply of the GraphQL API about one repository.
type repositoryReply struct {
	NameWithOwner    string `json:"nameWithOwner"`
	IsArchived       bool   `json:"isArchived"`
	ViewerPermission string `json:"viewerPermission"`
	DefaultBranchRef *reference
	Asked            *reference
	Head             *reference
	Issue            *struct{ State string }
	PullRequest      *struct{ State, HeadRefOid string }
	Refs             struct {
		TotalCount int
		Nodes      []reference
	}
	RepositoryTopics struct {
		Nodes []struct{ Topic struct{ Name string } }
	}
}

type reference struct {
	Name                   string
	Target                 struct{ OID string }
	Compare                *struct{ Status string }
	AssociatedPullRequests struct{ Nodes []struct{ URL string } }
}

// openPull returns the URL of the open pull request of a branch, or "".
func (r *reference) openPull() string {
	if r == nil || len(r.AssociatedPullRequests.Nodes) == 0 {
		return ""
	}
	return r.AssociatedPullRequests.Nodes[0].URL
}

// hasCommit reports whether the branch contains the commit of the question.
func (r *reference) hasCommit() bool {
	return r != nil && r.Compare != nil && (r.Compare.Status == "BEHIND" || r.Compare.Status == "IDENTICAL")
}

// surveyOnce answers up to forge.MaxSurvey questions with one request. The finding for a missing or
// forbidden repository is empty. Any other error in the reply fails all questions.
func (c *Client) surveyOnce(ctx context.Context, call apiCall, questions []forge.Question) ([]forge.Finding, error) {
	var query strings.Builder
	query.WriteString("query {\n")
	for i, q := range questions {
		writeQuestion(&query, i, q)
	}
	query.WriteString("}\n")
	var replies map[string]*repositoryReply
	failures, err := c.askGraphQL(ctx, call, query.String(), nil, &replies)
	if err != nil {
		return nil, err
	}
	for _, e := range failures {
		if !e.concernsOneQuestion() {
			return nil, c.graphQLFailure(call, []graphQLError{e})
		}
	}
	all := make([]forge.Finding, len(questions))
	for i, q := range questions {
		s, isAnswered := replies[questionAlias(i)]
		if !isAnswered {
			return nil, c.callError(ctx, call, errors.New("it has no answer to a question"))
		}
		if s != nil {
			all[i] = c.findingFor(s, q)
		}
	}
	return all, nil
}

// concernsOneQuestion reports whether an error concerns only one question. GitHub replies null for a missing or
// forbidden object, also if an organisation requires single sign-on.
func (e graphQLError) concernsOneQuestion() bool {
	return len(e.Path) > 0 && (e.Type == "NOT_FOUND" || e.Type == "FORBIDDEN")
}

// questionAlias returns the name of question i in the query and in the reply.
func questionAlias(i int) string { return fmt.Sprintf("q%d", i) }

const openPulls = "associatedPullRequests(states: [OPEN], first: 1) { nodes { url } }"

// writeQuestion writes the part of the query for one question. A GraphQL string has the form of a
// JSON string: https://spec.graphql.org/October2021/#sec-String-Value
func writeQuestion(w *strings.Builder, i int, q forge.Question) {
	owner, name, _ := strings.Cut(q.Repository, "/")
	fmt.Fprintf(w, "%s: repository(owner: %s, name: %s) { nameWithOwner", questionAlias(i), graphQLString(owner), graphQLString(name))
	if q.Pull > 0 {
		fmt.Fprintf(w, " pullRequest(number: %d) { state headRefOid } }\n", q.Pull)
		return
	}
	branch := "name target { oid }"
	if q.Commit != "" { // compare it with the branch: asked for alone, GitHub also returns commits of forks
		branch += fmt.Sprintf(" compare(headRef: %s) { status }", graphQLString(q.Commit))
	}
	fmt.Fprint(w, " isArchived viewerPermission ")
	if q.Branch != "" {
		fmt.Fprintf(w, "asked: ref(qualifiedName: %s) { %s }", graphQLString("refs/heads/"+q.Branch), branch)
	} else {
		fmt.Fprintf(w, "defaultBranchRef { %s }", branch)
	}
	if q.Issue > 0 {
		fmt.Fprintf(w, " issue(number: %d) { state }", q.Issue)
	}
	if q.Head != "" {
		fmt.Fprintf(w, " head: ref(qualifiedName: %s) { name target { oid } %s }", graphQLString("refs/heads/"+q.Head), openPulls)
	}
	w.WriteString(" }\n")
}

// graphQLString returns text as a GraphQL string.
func graphQLString(text string) string {
	raw, err := json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		panic(err) // cannot happen for a string
	}
	return string(raw)
}

// writePermissions lists the permissions that allow pushes.
var writePermissions = map[string]bool{"ADMIN": true, "MAINTAIN": true, "WRITE": true}

// installationToken is the prefix of Apps' tokens. GitHub reports no permission of the account for
// them.
const installationToken = "ghs_"

// findingFor converts a reply about a repository to the answer of a question.
func (c *Client) findingFor(s *repositoryReply, q forge.Question) forge.Finding {
	f := forge.Finding{
		Found: true, Repository: s.NameWithOwner, Archived: s.IsArchived,
		CanWrite: writePermissions[s.ViewerPermission] || strings.HasPrefix(c.token, installationToken),
	}
	at := s.DefaultBranchRef
	if q.Branch != "" {
		at, f.Branch = s.Asked, q.Branch
	}
	if at != nil {
		f.Branch, f.Tip, f.HasCommit = at.Name, at.Target.OID, at.hasCommit()
	}
	if s.Issue != nil {
		f.IssueState = strings.ToLower(s.Issue.State)
	}
	if s.PullRequest != nil {
		f.PullState, f.PullHead = strings.ToLower(s.PullRequest.State), s.PullRequest.HeadRefOid
	}
	f.Open = s.Head.openPull()
	return f
}
