package forgetest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"
)

// showIssue returns an issue in GitHub's form.
func (f *Forge) showIssue(r *Repository, i *issue) object {
	at := fmt.Sprintf("%s/issues/%d", f.apiURL(r), i.Number)
	page := fmt.Sprintf("%s/issues/%d", f.pageURL(r), i.Number)
	shown := object{
		"id": i.id, "node_id": fmt.Sprintf("I_forgetest_%d", i.id), "number": i.Number,
		"url": at, "repository_url": f.apiURL(r), "html_url": page, "labels_url": at + "/labels{/name}",
		"comments_url": at + "/comments", "events_url": at + "/events", "timeline_url": at + "/timeline",
		"title": i.Title, "body": orNull(i.Body), "state": i.State, "state_reason": nil, "locked": false,
		"user": f.showUser(i.Author), "author_association": i.Association,
		"labels": f.showLabels(r, i.Labels), "comments": len(i.comments),
		"created_at": i.created, "updated_at": i.updated, "closed_at": orNull(i.closed), "closed_by": nil,
	}
	f.showTriage(shown, r, i)
	if i.PullRequest {
		page = fmt.Sprintf("%s/pull/%d", f.pageURL(r), i.Number)
		shown["html_url"], shown["draft"] = page, i.pull != nil && i.pull.draft
		shown["pull_request"] = object{
			"url": fmt.Sprintf("%s/pulls/%d", f.apiURL(r), i.Number), "html_url": page,
			"diff_url": page + ".diff", "patch_url": page + ".patch", "merged_at": nil,
		}
	}
	return shown
}

// showTriage adds the assignees and the milestone of an issue or pull request.
func (f *Forge) showTriage(shown object, r *Repository, i *issue) {
	assignees := f.showLogins(i.assignees)
	shown["assignees"], shown["assignee"], shown["milestone"] = assignees, nil, nil
	if len(assignees) > 0 {
		shown["assignee"] = assignees[0]
	}
}

// showComment returns a comment in GitHub's form.
func (f *Forge) showComment(r *Repository, i *issue, c *comment) object {
	kind := "issues"
	if i.PullRequest {
		kind = "pull"
	}
	return object{
		"id": c.ID, "node_id": fmt.Sprintf("IC_forgetest_%d", c.ID),
		"url":       fmt.Sprintf("%s/issues/comments/%d", f.apiURL(r), c.ID),
		"html_url":  fmt.Sprintf("%s/%s/%d#issuecomment-%d", f.pageURL(r), kind, i.Number, c.ID),
		"issue_url": fmt.Sprintf("%s/issues/%d", f.apiURL(r), i.Number),
		"body":      c.Body, "user": f.showUser(c.Author), "author_association": c.Association,
		"created_at": c.created, "updated_at": c.updated, "performed_via_github_app": nil,
	}
}

// showLabels returns labels in GitHub's form.
func (f *Forge) showLabels(r *Repository, names []string) []object {
	return showAll(names, func(name string) object {
		id := numberOf("label " + name)
		return object{
			"id": id, "node_id": fmt.Sprintf("LA_forgetest_%d", id), "name": name,
			"url":   f.apiURL(r) + "/labels/" + url.PathEscape(name),
			"color": "ededed", "default": false, "description": "",
		}
	})
}

// showAll converts the elements of a list. The result is an empty list instead of null.
func showAll[T any](list []T, show func(T) object) []object {
	shown := make([]object, 0, len(list))
	for _, each := range list {
		shown = append(shown, show(each))
	}
	return shown
}

func (f *Forge) showLogins(logins []string) []object {
	return showAll(logins, func(login string) object { return f.showUser(User{Login: login}) })
}

// userURLs maps the URL fields of an account to paths relative to the account.
var userURLs = map[string]string{
	"url": "", "followers_url": "/followers", "following_url": "/following{/other_user}",
	"gists_url": "/gists{/gist_id}", "starred_url": "/starred{/owner}{/repo}",
	"subscriptions_url": "/subscriptions", "organizations_url": "/orgs", "repos_url": "/repos",
	"events_url": "/events{/privacy}", "received_events_url": "/received_events",
}

// showUser returns an account in GitHub's form.
func (f *Forge) showUser(u User) object {
	id := cmp.Or(u.ID, numberOf(strings.ToLower(u.Login)))
	name := url.PathEscape(u.Login)
	shown := object{
		"login": u.Login, "id": id, "node_id": fmt.Sprintf("U_forgetest_%d", id),
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", f.URL, id), "gravatar_id": "",
		"html_url": f.URL + "/" + name, "type": cmp.Or(u.Type, "User"), "site_admin": false,
	}
	for field, path := range userURLs {
		shown[field] = f.APIURL + "/users/" + name + path
	}
	return shown
}

// numberOf returns an id computed from a name.
func numberOf(name string) int64 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return int64(sum.Sum32())
}

func orNull[T comparable](value T) any {
	if value == *new(T) {
		return nil
	}
	return value
}

// showPull returns a pull request in the form that lists have.
func (f *Forge) showPull(r *Repository, i *issue) object {
	p := i.pull
	if !p.merged { // a merged pull request keeps its commits
		p.headSHA, p.baseSHA = r.tip(p.head, p.headSHA), r.tip(p.base, p.baseSHA)
	}
	page := fmt.Sprintf("%s/pull/%d", f.pageURL(r), i.Number)
	shown := object{
		"id": i.id, "node_id": p.nodeID, "number": i.Number, "state": i.State, "locked": false, "draft": p.draft,
		"title": i.Title, "body": orNull(i.Body), "user": f.showUser(i.Author), "author_association": i.Association,
		"labels": f.showLabels(r, i.Labels), "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"head": f.showHead(r, p), "base": f.showEnd(r, p.base, p.baseSHA),
		"requested_reviewers": f.showLogins(p.reviewers), "requested_teams": f.showTeams(r, p.teams),
		"created_at": i.created, "updated_at": i.updated, "closed_at": orNull(i.closed),
		"merged_at": nil, "merge_commit_sha": nil, "auto_merge": nil,
	}
	if p.merged {
		shown["merged_at"], shown["merge_commit_sha"] = i.updated, p.headSHA
	}
	f.showTriage(shown, r, i)
	f.showPullURLs(shown, r, i)
	return shown
}

// tip returns the commit of a branch. If the branch was deleted, it returns last.
func (r *Repository) tip(branch, last string) string {
	if sha, found := r.branch(branch); found {
		return sha
	}
	return last
}

// showHead returns the head of a pull request, which may be in a fork.
func (f *Forge) showHead(r *Repository, p *pull) object {
	shown := f.showEnd(r, p.head, p.headSHA)
	if p.headRepository != "" {
		owner, _, _ := strings.Cut(p.headRepository, "/")
		shown["label"], shown["user"] = owner+":"+p.head, f.showUser(User{Login: owner})
		shown["repo"].(object)["full_name"] = p.headRepository
	}
	return shown
}

func (f *Forge) showEnd(r *Repository, branch, sha string) object {
	return object{
		"label": r.Owner + ":" + branch, "ref": branch, "sha": sha,
		"user": f.showUser(User{Login: r.Owner, Type: "Organization"}), "repo": f.showRepository(r),
	}
}

// showPullURLs adds the URLs of a pull request.
func (f *Forge) showPullURLs(shown object, r *Repository, i *issue) {
	at := fmt.Sprintf("%s/pulls/%d", f.apiURL(r), i.Number)
	asIssue := fmt.Sprintf("%s/issues/%d", f.apiURL(r), i.Number)
	links := map[string]string{
		"self": at, "html": shown["html_url"].(string), "issue": asIssue,
		"comments": asIssue + "/comments", "commits": at + "/commits",
		"review_comments": at + "/comments", "review_comment": f.apiURL(r) + "/pulls/comments{/number}",
		"statuses": f.apiURL(r) + "/statuses/" + i.pull.headSHA,
	}
	shown["url"] = at
	linked := object{}
	for name, address := range links {
		linked[name] = object{"href": address}
		if name != "self" && name != "html" {
			shown[name+"_url"] = address
		}
	}
	shown["_links"] = linked
}

// showTeams returns teams in GitHub's form.
func (f *Forge) showTeams(r *Repository, slugs []string) []object {
	return showAll(slugs, func(slug string) object {
		id := numberOf("team " + slug)
		at := fmt.Sprintf("%s/organizations/%d/team/%d", f.APIURL, r.id, id)
		return object{
			"id": id, "node_id": fmt.Sprintf("T_forgetest_%d", id), "name": slug, "slug": slug,
			"url": at, "members_url": at + "/members{/member}", "repositories_url": at + "/repos",
			"html_url":    fmt.Sprintf("%s/orgs/%s/teams/%s", f.URL, r.Owner, url.PathEscape(slug)),
			"description": nil, "permission": "push", "privacy": "closed", "parent": nil,
			"type": "organization", "organization_id": numberOf(strings.ToLower(r.Owner)),
		}
	})
}

// showFullPull returns a pull request in the form of a reply about one pull request, with more
// fields.
func (f *Forge) showFullPull(r *Repository, i *issue) object {
	shown := f.showPull(r, i)
	for _, team := range shown["requested_teams"].([]object) {
		delete(team, "parent")
	}
	p := i.pull
	size := r.changesBetween(p.baseSHA, p.headSHA)
	shown["commits"] = r.commitsBetween(p.baseSHA, p.headSHA)
	shown["additions"], shown["deletions"], shown["changed_files"] = size.additions, size.deletions, size.files
	shown["comments"], shown["review_comments"] = len(i.comments), 0
	shown["maintainer_can_modify"], shown["rebaseable"] = false, nil
	state := cmp.Or(p.mergeable, r.mergeable(p.baseSHA, p.headSHA))
	shown["mergeable"], shown["mergeable_state"] = !p.merged && state != "dirty", state
	if state == "unknown" {
		shown["mergeable"] = nil
	}
	shown["merged"], shown["merged_by"] = p.merged, nil
	if p.merged {
		shown["merged_by"] = f.showUser(octocat)
	}
	return shown
}

// showReviewComment returns a comment on a diff in GitHub's form.
func (f *Forge) showReviewComment(r *Repository, i *issue, c *reviewComment) object {
	at := fmt.Sprintf("%s/pulls/comments/%d", f.apiURL(r), c.id)
	pull := fmt.Sprintf("%s/pulls/%d", f.apiURL(r), i.Number)
	page := fmt.Sprintf("%s/pull/%d#discussion_r%d", f.pageURL(r), i.Number, c.id)
	return object{
		"id": c.id, "node_id": fmt.Sprintf("PRRC_forgetest_%d", c.id), "pull_request_review_id": c.ReviewID,
		"url": at, "html_url": page, "pull_request_url": pull,
		"_links": object{"self": object{"href": at}, "html": object{"href": page}, "pull_request": object{"href": pull}},
		"path":   c.Path, "line": c.Line, "diff_hunk": c.DiffHunk, "side": "RIGHT", "subject_type": "line",
		"commit_id": i.pull.headSHA, "original_commit_id": i.pull.headSHA,
		"user": f.showUser(c.Author), "author_association": "MEMBER", "body": c.Body, "created_at": c.created, "updated_at": c.created,
	}
}
