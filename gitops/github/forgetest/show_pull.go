package forgetest

import (
	"fmt"
	"strings"
)

// showPull is a pull request as lists have it.
func (f *Forge) showPull(r *Repository, i *issue) object {
	p := i.pull
	p.headSHA, p.baseSHA = r.tip(p.head, p.headSHA), r.tip(p.base, p.baseSHA)
	page := fmt.Sprintf("%s/pull/%d", f.pageURL(r), i.Number)
	shown := object{
		"id": i.id, "node_id": p.nodeID, "number": i.Number, "state": i.State, "locked": false, "draft": p.draft,
		"title": i.Title, "body": orNull(i.Body), "user": f.showUser(i.Author), "author_association": i.Association,
		"labels": f.showLabels(r, i.Labels), "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"head": f.showEnd(r, p.head, p.headSHA), "base": f.showEnd(r, p.base, p.baseSHA),
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

// tip is the commit of a branch, or the one it had when it was last seen.
func (r *Repository) tip(branch, last string) string {
	if sha, found := r.branch(branch); found {
		return sha
	}
	return last
}

func (f *Forge) showEnd(r *Repository, branch, sha string) object {
	return object{
		"label": r.Owner + ":" + branch, "ref": branch, "sha": sha,
		"user": f.showUser(User{Login: r.Owner, Type: "Organization"}), "repo": f.showRepository(r),
	}
}

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

func (f *Forge) showTeams(r *Repository, slugs []string) []object {
	return showAll(slugs, func(slug string) object {
		id := numberOf("team " + slug)
		at := fmt.Sprintf("%s/organizations/%d/team/%d", f.APIURL, r.id, id)
		return object{
			"id": id, "node_id": fmt.Sprintf("T_forgetest_%d", id), "name": slug, "slug": slug,
			"url": at, "members_url": at + "/members{/member}", "repositories_url": at + "/repos",
			"html_url":    fmt.Sprintf("%s/orgs/%s/teams/%s", f.URL, r.Owner, pathEscape(slug)),
			"description": nil, "permission": "push", "privacy": "closed", "parent": nil,
			"type": "organization", "organization_id": numberOf(strings.ToLower(r.Owner)),
		}
	})
}

// showFullPull is a pull request as it is answered alone.
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
	shown["mergeable"], shown["mergeable_state"] = !p.merged, "clean"
	shown["merged"], shown["merged_by"] = p.merged, nil
	if p.merged {
		shown["merged_by"] = f.showUser(octocat)
	}
	return shown
}

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
