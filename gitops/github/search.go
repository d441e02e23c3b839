package github

import (
	"context"
	"fmt"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// listOwned requests few branches per repository. GitHub charges for possible results, and all
// pages must fit into the limit of one hour:
// https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
const listOwned = `query($owner: String!, $after: String, $topics: Boolean!, $heads: String!, $wantHeads: Boolean!) {
  repositoryOwner(login: $owner) {
    repositories(first: 100, after: $after, isArchived: false, ownerAffiliations: [OWNER], orderBy: {field: NAME, direction: ASC}) {
      totalCount pageInfo { hasNextPage endCursor }
      nodes {
        nameWithOwner isArchived viewerPermission defaultBranchRef { name target { oid } }
        repositoryTopics(first: 20) @include(if: $topics) { nodes { topic { name } } }
        refs(refPrefix: "refs/heads/", query: $heads, first: 10) @include(if: $wantHeads) { totalCount nodes { name ` + openPulls + ` } }
      }
    }
  }
}`

const findAny = `query($words: String!, $after: String, $type: SearchType!) {
  search(query: $words, type: $type, first: 100, after: $after) {
    issueCount repositoryCount pageInfo { hasNextPage endCursor }
    nodes { ... on Repository { nameWithOwner } ... on Issue { number repository { nameWithOwner } } }
  }
}`

// cursor tells where the next page of a list begins.
type cursor struct {
	HasNextPage bool
	EndCursor   string
}

// Search lists the repositories of an account, or searches GitHub. A search returns up to
// forge.MaxFound results: https://docs.github.com/en/rest/search/search
func (c *Client) Search(ctx context.Context, s forge.Search, limit int) ([]forge.Hit, error) {
	switch {
	case s.Code != "":
		return c.searchCode(ctx, s, limit)
	case s.Issues != "" || len(s.Labels) > 0:
		words := []string{"is:issue", "is:open", "archived:false"}
		for _, label := range s.Labels {
			words = append(words, "label:"+quotePhrase(label))
		}
		return c.searchAny(ctx, "ISSUE", searchText(s, words, s.Issues), limit)
	case s.Organisation != "":
		return c.listOwned(ctx, s, limit)
	}
	return c.searchAny(ctx, "REPOSITORY", searchText(s, []string{"archived:false", "topic:" + s.Topic}, ""), limit)
}

// quotePhrase quotes a text for a search. A search cannot contain escaped quotes, so they become blanks.
func quotePhrase(text string) string { return `"` + strings.ReplaceAll(text, `"`, " ") + `"` }

// searchText returns the text of a search: the words, the organisation, then the free text.
func searchText(s forge.Search, words []string, text string) string {
	if s.Organisation != "" {
		words = append(words, "org:"+s.Organisation)
	}
	if text != "" {
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// searchAny returns all results of a search in GitHub's order. kind is GitHub's name for the type of result.
// More than limit results are an error.
func (c *Client) searchAny(ctx context.Context, kind, words string, limit int) (hits []forge.Hit, err error) {
	call := apiCall{action: "search GitHub for " + words, permission: "metadata: read"}
	variables := map[string]any{"words": words, "type": kind, "after": nil}
	for {
		var found struct {
			Search struct {
				IssueCount, RepositoryCount int
				PageInfo                    cursor
				Nodes                       []struct {
					NameWithOwner string
					Number        int
					Repository    struct{ NameWithOwner string }
				}
			}
		}
		if err := c.queryGraphQL(ctx, call, findAny, variables, &found); err != nil {
			return nil, err
		}
		count := found.Search.IssueCount
		if kind == "REPOSITORY" {
			count = found.Search.RepositoryCount
		}
		if err := requireAtMost(call, count, min(limit, forge.MaxFound)); err != nil {
			return nil, err
		}
		for _, node := range found.Search.Nodes {
			name := node.NameWithOwner
			if node.Number > 0 {
				name = node.Repository.NameWithOwner
			}
			if name != "" {
				hits = append(hits, forge.Hit{Repository: name, Issue: node.Number})
			}
		}
		if !found.Search.PageInfo.HasNextPage {
			return hits, nil
		}
		variables["after"] = found.Search.PageInfo.EndCursor
	}
}

// requireAtMost returns an error if there are more than limit results. A part of them could be different at
// each call.
func requireAtMost(call apiCall, found, limit int) error {
	if found <= limit {
		return nil
	}
	return &forge.Error{
		Kind: forge.Invalid, Doing: call.action, Message: fmt.Sprintf("it finds %d, and at most %d can be taken", found, limit),
		Remedy: "ask for less with each query, or list an organisation by itself or with a topic",
	}
}

// listOwned lists the repositories of an account, sorted by name, without archived ones. More than
// limit are an error.
func (c *Client) listOwned(ctx context.Context, s forge.Search, limit int) (hits []forge.Hit, err error) {
	call := apiCall{action: "list the repositories of " + s.Organisation, permission: "metadata: read"}
	variables := map[string]any{"owner": s.Organisation, "topics": s.Topic != "", "heads": s.Heads, "wantHeads": s.Heads != "", "after": nil}
	for {
		var found struct {
			RepositoryOwner *struct {
				Repositories struct {
					TotalCount int
					PageInfo   cursor
					Nodes      []*repositoryReply
				}
			}
		}
		if err := c.queryGraphQL(ctx, call, listOwned, variables, &found); err != nil {
			return nil, err
		}
		if found.RepositoryOwner == nil {
			return nil, &forge.Error{Kind: forge.NotFound, Doing: call.action, Message: "there is no such account", Remedy: "check the name of the organisation"}
		}
		page := found.RepositoryOwner.Repositories
		if s.Topic == "" { // TotalCount also counts repositories without the topic
			if err := requireAtMost(call, page.TotalCount, limit); err != nil {
				return nil, err
			}
		}
		for _, n := range page.Nodes {
			if n != nil && !n.IsArchived && n.hasTopic(s.Topic) {
				hits = append(hits, c.ownedHit(n))
			}
		}
		if err := requireAtMost(call, len(hits), limit); err != nil {
			return nil, err
		}
		if !page.PageInfo.HasNextPage {
			return hits, nil
		}
		variables["after"] = page.PageInfo.EndCursor
	}
}

// hasTopic reports whether a repository has a topic. Every repository has the topic "".
func (s *repositoryReply) hasTopic(topic string) bool {
	return topic == "" || slices.ContainsFunc(s.RepositoryTopics.Nodes, func(n struct{ Topic struct{ Name string } }) bool { return n.Topic.Name == topic })
}

// ownedHit returns the result for a repository that listOwned lists: the open pull requests by their branches, and
// the finding if the reply is complete.
func (c *Client) ownedHit(s *repositoryReply) forge.Hit {
	hit := forge.Hit{Repository: s.NameWithOwner, Open: map[string]string{}}
	if s.Refs.TotalCount <= len(s.Refs.Nodes) { // otherwise some matching branches are not in the reply
		finding := c.findingFor(s, forge.Question{})
		hit.Finding = &finding
	}
	for _, ref := range s.Refs.Nodes {
		if open := ref.openPull(); open != "" {
			hit.Open[ref.Name] = open
		}
	}
	return hit
}

// searchCode returns the repositories with matching files. It uses REST, because GraphQL cannot search code.
func (c *Client) searchCode(ctx context.Context, s forge.Search, limit int) (hits []forge.Hit, err error) {
	words := searchText(s, nil, s.Code)
	call := apiCall{action: "search the code on GitHub for " + words, permission: "contents: read"}
	seen := map[string]bool{}
	options := &gh.SearchOptions{ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for options.Page != 0 {
		page, resp, err := c.rest.Search.Code(ctx, words, options)
		if err != nil {
			return nil, c.callError(ctx, call, err)
		}
		if page.GetIncompleteResults() {
			return nil, &forge.Error{Kind: forge.Unavailable, Doing: call.action, Message: "GitHub gave a part of the results", Remedy: "try again later, or ask for less"}
		}
		if err := requireAtMost(call, page.GetTotal(), forge.MaxFound); err != nil {
			return nil, err
		}
		for _, result := range page.CodeResults {
			if name := result.GetRepository().GetFullName(); name != "" && !seen[name] {
				seen[name] = true
				hits = append(hits, forge.Hit{Repository: name})
			}
		}
		options.Page = resp.NextPage
	}
	return hits, requireAtMost(call, len(hits), limit)
}
