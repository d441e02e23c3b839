package forgetest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"
)

// The functions below show what agent-ci reads. The forge adds the other fields that GitHub's
// description requires (description.complete).

// showIssue returns an issue in GitHub's form.
func (f *Forge) showIssue(r *Repository, i *issue) object {
	shown := object{
		"id": i.id, "number": i.Number, "html_url": fmt.Sprintf("%s/issues/%d", f.pageURL(r), i.Number),
		"title": i.Title, "body": orNull(i.Body), "state": i.State, "user": f.showUser(i.Author), "author_association": i.Association,
		"labels": f.showLabels(i.Labels), "assignees": f.showLogins(i.assignees), "comments": len(i.comments),
		"created_at": i.created, "updated_at": i.updated, "closed_at": orNull(i.closed),
	}
	if i.PullRequest {
		shown["html_url"], shown["draft"] = fmt.Sprintf("%s/pull/%d", f.pageURL(r), i.Number), i.pull != nil && i.pull.draft
		shown["pull_request"] = object{}
	}
	return shown
}

// showComment returns a comment in GitHub's form.
func (f *Forge) showComment(r *Repository, i *issue, c *comment) object {
	kind := "issues"
	if i.PullRequest {
		kind = "pull"
	}
	return object{
		"id": c.ID, "html_url": fmt.Sprintf("%s/%s/%d#issuecomment-%d", f.pageURL(r), kind, i.Number, c.ID),
		"body": c.Body, "user": f.showUser(c.Author), "author_association": c.Association, "created_at": c.created, "updated_at": c.updated,
	}
}

func (f *Forge) showLabels(names []string) []object {
	return showAll(names, func(name string) object { return object{"name": name} })
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

// showUser returns an account in GitHub's form.
func (f *Forge) showUser(u User) object {
	return object{
		"login": u.Login, "id": cmp.Or(u.ID, numberOf(strings.ToLower(u.Login))),
		"html_url": f.URL + "/" + url.PathEscape(u.Login), "type": cmp.Or(u.Type, "User"),
	}
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
	shown := object{
		"id": i.id, "node_id": p.nodeID, "number": i.Number, "state": i.State, "draft": p.draft,
		"title": i.Title, "body": orNull(i.Body), "user": f.showUser(i.Author), "author_association": i.Association,
		"labels": f.showLabels(i.Labels), "assignees": f.showLogins(i.assignees), "html_url": fmt.Sprintf("%s/pull/%d", f.pageURL(r), i.Number),
		"head": f.showHead(r, p), "base": f.showEnd(r, p.base, p.baseSHA),
		"requested_reviewers": f.showLogins(p.reviewers),
		"requested_teams":     showAll(p.teams, func(slug string) object { return object{"slug": slug, "name": slug} }),
		"created_at":          i.created, "updated_at": i.updated, "closed_at": orNull(i.closed), "merged_at": nil, "merge_commit_sha": nil,
	}
	if p.merged {
		shown["merged_at"], shown["merge_commit_sha"] = i.updated, p.headSHA
	}
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
		shown["user"] = f.showUser(User{Login: owner})
		shown["repo"].(object)["full_name"] = p.headRepository
	}
	return shown
}

func (f *Forge) showEnd(r *Repository, branch, sha string) object {
	return object{
		"ref": branch, "sha": sha,
		"user": f.showUser(User{Login: r.Owner, Type: "Organization"}), "repo": f.showRepository(r),
	}
}

// showFullPull returns a pull request in the form of a reply about one pull request, with more
// fields.
func (f *Forge) showFullPull(r *Repository, i *issue) object {
	shown := f.showPull(r, i)
	p := i.pull
	size := r.changesBetween(p.baseSHA, p.headSHA)
	shown["commits"] = r.commitsBetween(p.baseSHA, p.headSHA)
	shown["additions"], shown["deletions"], shown["changed_files"] = size.additions, size.deletions, size.files
	shown["comments"] = len(i.comments)
	state := cmp.Or(p.mergeable, r.mergeable(p.baseSHA, p.headSHA))
	shown["mergeable"], shown["mergeable_state"] = !p.merged && state != "dirty", state
	if state == "unknown" {
		shown["mergeable"] = nil
	}
	shown["merged"] = p.merged
	return shown
}

// showReviewComment returns a comment on a diff in GitHub's form.
func (f *Forge) showReviewComment(r *Repository, i *issue, c *reviewComment) object {
	return object{
		"id": c.id, "pull_request_review_id": c.ReviewID, "html_url": fmt.Sprintf("%s/pull/%d#discussion_r%d", f.pageURL(r), i.Number, c.id),
		"path": c.Path, "line": c.Line, "diff_hunk": c.DiffHunk, "commit_id": i.pull.headSHA, "original_commit_id": i.pull.headSHA,
		"user": f.showUser(c.Author), "author_association": "MEMBER", "body": c.Body, "created_at": c.created, "updated_at": c.created,
	}
}
