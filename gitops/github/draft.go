package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
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

// isTemporary reports whether GitHub stopped working on the query, because of a timeout or a fault of its own.
func (e graphQLError) isTemporary() bool {
	return strings.HasPrefix(e.Message, "Something went wrong while executing your query")
}

// kind returns the kind of error. Refusals of a query itself have no type.
func (e graphQLError) kind() forge.Kind {
	switch {
	case pullRequestsNotPermitted(e.Message):
		return forge.NotPermitted
	case kindByGraphQLType[e.Type] != "":
		return kindByGraphQLType[e.Type]
	case namesRateLimit(e.Message):
		return forge.RateLimited
	case e.isTemporary():
		return forge.Unavailable
	}
	return forge.Invalid
}

// queryGraphQL sends a GraphQL query and decodes the reply's data into data, which may be nil.
func (c *Client) queryGraphQL(ctx context.Context, call apiCall, query string, variables, data any) error {
	failures, err := c.askGraphQL(ctx, call, query, variables, data)
	if err == nil && len(failures) > 0 {
		err = c.graphQLFailure(call, failures)
	}
	return err
}

// askGraphQL is queryGraphQL for a reply with data and errors. It repeats a query after a temporary failure: all
// queries of this package may be executed twice.
func (c *Client) askGraphQL(ctx context.Context, call apiCall, query string, variables, data any) ([]graphQLError, error) {
	type graphQLReply struct {
		Data   json.RawMessage
		Errors []graphQLError
	}
	var reply graphQLReply
	var err error
	c.retry(ctx, func() bool {
		reply = graphQLReply{}
		err = c.sendJSON(ctx, http.MethodPost, c.graphQL, map[string]any{"query": query, "variables": variables}, &reply)
		return slices.ContainsFunc(reply.Errors, graphQLError.isTemporary)
	})
	switch hasData := len(reply.Data) > 0 && string(reply.Data) != "null"; {
	case err != nil: // no reply
	case !hasData && len(reply.Errors) == 0:
		err = errors.New("it has neither data nor errors")
	case hasData && data != nil:
		err = json.Unmarshal(reply.Data, data)
	}
	if err != nil {
		return nil, c.callError(ctx, call, err)
	}
	return reply.Errors, nil
}

// retry calls send until it returns false, up to transport.MaxAttempts times. It waits before each retry, and sends none
// after the end of ctx.
func (c *Client) retry(ctx context.Context, send func() (again bool)) {
	for attempt := 1; send() && attempt < transport.MaxAttempts && c.clock.Wait(ctx, time.Second<<(attempt-1)) == nil; attempt++ {
	}
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
	e := &forge.Error{
		Kind: list[0].kind(), Doing: call.action, Status: http.StatusOK, Method: http.MethodPost, URL: c.graphQL,
		Message: c.printable(strings.Join(messages, "; ")), Err: errors.New("GraphQL errors"),
	}
	e.Remedy = c.remedy(e, call)
	return e
}
