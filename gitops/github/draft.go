package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const (
	convertToDraft = `mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`
	markReady      = `mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`
)

// SetDraft makes a pull request a draft, or marks it as ready. It uses GraphQL, because REST has no such call.
func (r *repository) SetDraft(ctx context.Context, pull *forge.PullRequest, draft bool) error {
	if pull.Draft == draft {
		return nil
	}
	call := apiCall{action: fmt.Sprintf("mark the pull request #%d as ready for review", pull.Number), permission: writePulls}
	mutation := markReady
	if draft {
		call.action = fmt.Sprintf("make the pull request #%d a draft", pull.Number)
		mutation = convertToDraft
	}
	if err := r.queryGraphQL(ctx, call, mutation, map[string]string{"id": pull.NodeID}, nil); err != nil {
		return err
	}
	pull.Draft = draft
	return nil
}

type graphQLError struct {
	Type, Message string
	Path          []any
}

// queryGraphQL sends a GraphQL query and decodes the reply's data into data.
func (c *Client) queryGraphQL(ctx context.Context, call apiCall, query string, variables, data any) error {
	var reply struct {
		Data   any
		Errors []graphQLError
	}
	reply.Data = data
	if err := c.sendJSON(ctx, http.MethodPost, c.graphQL, map[string]any{"query": query, "variables": variables}, &reply); err != nil {
		return c.callError(ctx, call, err)
	}
	if len(reply.Errors) > 0 {
		return c.graphQLFailure(call, reply.Errors)
	}
	return nil
}

// sendJSON sends a request that go-github does not support, and decodes the JSON reply into into.
func (c *Client) sendJSON(ctx context.Context, method, path string, body, into any) error {
	request, err := c.rest.NewRequest(method, path, body)
	if err != nil {
		return err
	}
	_, err = c.rest.Do(ctx, request, into)
	return err
}

var kindByGraphQLType = map[string]forge.Kind{
	"NOT_FOUND":           forge.NotFound,
	"FORBIDDEN":           forge.Forbidden,
	"INSUFFICIENT_SCOPES": forge.Forbidden,
	"RATE_LIMITED":        forge.RateLimited,
	"RATE_LIMIT":          forge.RateLimited,
	"UNPROCESSABLE":       forge.Invalid,
}

// graphQLFailure returns the error for GraphQL errors, which have status 200.
func (c *Client) graphQLFailure(call apiCall, list []graphQLError) error {
	messages := namesOf(list, func(each graphQLError) string { return each.Message })
	kind := cmp.Or(kindByGraphQLType[list[0].Type], forge.Invalid)
	message := c.printable(strings.Join(messages, "; "))
	if pullRequestsNotPermitted(message) {
		kind = forge.NotPermitted
	}
	e := &forge.Error{
		Kind: kind, Doing: call.action, Status: http.StatusOK, Method: http.MethodPost, URL: c.graphQL,
		Message: message, Err: errors.New("GraphQL errors"),
	}
	e.Remedy = c.remedy(e, call)
	return e
}
