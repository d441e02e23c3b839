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
func (c *Client) Search(ctx context.Context, s forge.Search, most int) ([]forge.Hit, error) {
	switch {
	case s.Code != "":
		return c.searchCode(ctx, s, most)
	case s.Issues != "" || len(s.Labels) > 0:
		words := []string{"is:issue", "is:open", "archived:false"}
		for _, label := range s.Labels {
			words = append(words, "label:"+phrase(label))
		}
		return c.searchAny(ctx, "ISSUE", wordsOf(s, words, s.Issues), most)
	case s.Organisation != "":
		return c.listOwned(ctx, s, most)
	}
	return c.searchAny(ctx, "REPOSITORY", wordsOf(s, []string{"archived:false", "topic:" + s.Topic}, ""), most)
}

// phrase quotes a text for a search. A search cannot contain escaped quotes, so they become blanks.
func phrase(text string) string { return `"` + strings.ReplaceAll(text, `"`, " ") + `"` }

// wordsOf returns the search text: the words, the organisation, then the free text.
func wordsOf(s forge.Search, words []string, text string) string {
	if s.Organisation != "" {
		words = append(words, "org:"+s.Organisation)
	}
	if text != "" {
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// searchAny returns all results of a search in GitHub's order, page by page. kind is GitHub's name
// for the type of result. More than most results are an error.
func (c *Client) searchAny(ctx context.Context, kind, words string, most int) (hits []forge.Hit, err error) {
	what := call{action: "search GitHub for " + words, permission: "metadata: read"}
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
		if err := c.query(ctx, what, findAny, variables, &found); err != nil {
			return nil, err
		}
		count := found.Search.IssueCount
		if kind == "REPOSITORY" {
			count = found.Search.RepositoryCount
		}
		if err := bounded(what, count, min(most, forge.MaxFound)); err != nil {
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

// bounded returns an error if there are more than most results. A part of them could be different
// at each call.
func bounded(what call, found, most int) error {
	if found <= most {
		return nil
	}
	return &forge.Error{
		Kind: forge.Invalid, Doing: what.action, Message: fmt.Sprintf("it finds %d, and at most %d can be taken", found, most),
		Remedy: "ask for less with each query, or list an organisation by itself or with a topic",
	}
}

// listOwned lists the repositories of an account, sorted by name, without archived ones. More than
// most are an error.
func (c *Client) listOwned(ctx context.Context, s forge.Search, most int) (hits []forge.Hit, err error) {
	what := call{action: "list the repositories of " + s.Organisation, permission: "metadata: read"}
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
		if err := c.query(ctx, what, listOwned, variables, &found); err != nil {
			return nil, err
		}
		if found.RepositoryOwner == nil {
			return nil, &forge.Error{Kind: forge.NotFound, Doing: what.action, Message: "there is no such account", Remedy: "check the name of the organisation"}
		}
		page := found.RepositoryOwner.Repositories
		if s.Topic == "" {
			if err := bounded(what, page.TotalCount, most); err != nil {
				return nil, err
			}
		}
		for _, n := range page.Nodes {
			if n != nil && !n.IsArchived && n.hasTopic(s.Topic) {
				hits = append(hits, c.ownedHit(n))
			}
		}
		if err := bounded(what, len(hits), most); err != nil {
			return nil, err
		}
		if !page.PageInfo.HasNextPage {
			return hits, nil
		}
		variables["after"] = page.PageInfo.EndCursor
	}
}

func (s *repositoryReply) hasTopic(topic string) bool {
	return topic == "" || slices.ContainsFunc(s.RepositoryTopics.Nodes, func(n struct{ Topic struct{ Name string } }) bool { return n.Topic.Name == topic })
}

// ownedHit returns the hit for a repository of the list.
func (c *Client) ownedHit(s *repositoryReply) forge.Hit {
	hit := forge.Hit{Repository: s.NameWithOwner, Open: map[string]forge.OpenPull{}}
	if s.Refs.TotalCount <= len(s.Refs.Nodes) { // otherwise some matching branches are not in the reply
		finding := c.findingFor(s, forge.Question{})
		hit.Finding = &finding
	}
	for _, ref := range s.Refs.Nodes {
		if open := ref.openPull(); open != nil {
			hit.Open[ref.Name] = *open
		}
	}
	return hit
}

// searchCode uses REST, because GraphQL cannot search code.
func (c *Client) searchCode(ctx context.Context, s forge.Search, most int) (hits []forge.Hit, err error) {
	words := wordsOf(s, nil, s.Code)
	what := call{action: "search the code on GitHub for " + words, permission: "contents: read"}
	seen := map[string]bool{}
	options := &gh.SearchOptions{ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for options.Page != 0 {
		page, resp, err := c.rest.Search.Code(ctx, words, options)
		if err != nil {
			return nil, c.errorFor(ctx, what, err)
		}
		if page.GetIncompleteResults() {
			return nil, &forge.Error{Kind: forge.Unavailable, Doing: what.action, Message: "GitHub gave a part of the results", Remedy: "try again later, or ask for less"}
		}
		if err := bounded(what, page.GetTotal(), forge.MaxFound); err != nil {
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
	return hits, bounded(what, len(hits), most)
}
