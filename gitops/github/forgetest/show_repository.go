package forgetest

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
)

func (f *Forge) apiURL(r *Repository) string  { return f.APIURL + "/repos/" + r.fullName() }
func (f *Forge) pageURL(r *Repository) string { return f.URL + "/" + r.fullName() }

// repositoryURLs maps the URL fields of a repository to paths relative to the repository.
var repositoryURLs = map[string]string{
	"url": "", "archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}",
	"blobs_url": "/git/blobs{/sha}", "branches_url": "/branches{/branch}",
	"collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}",
	"commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}", "contents_url": "/contents/{+path}",
	"contributors_url": "/contributors", "deployments_url": "/deployments", "downloads_url": "/downloads",
	"events_url": "/events", "forks_url": "/forks", "git_commits_url": "/git/commits{/sha}",
	"git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}", "hooks_url": "/hooks",
	"issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
	"languages_url": "/languages", "merges_url": "/merges", "milestones_url": "/milestones{/number}",
	"notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
	"releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
	"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags",
	"teams_url": "/teams", "trees_url": "/git/trees{/sha}",
}

// repositoryConstants holds fields that are the same for all repositories of the forge.
var repositoryConstants = object{
	"description": nil, "homepage": nil, "language": nil, "mirror_url": nil, "license": nil,
	"fork": false, "has_issues": true, "has_projects": true, "has_wiki": false, "has_pages": false, "has_downloads": true,
	"has_discussions": false, "disabled": false, "is_template": false, "web_commit_signoff_required": false,
	"allow_forking": true, "topics": []string{}, "size": 1,
	"forks": 0, "forks_count": 0, "stargazers_count": 0, "watchers": 0, "watchers_count": 0,
}

// showRepository returns a repository in the form that it has inside other replies.
func (f *Forge) showRepository(r *Repository) object {
	shown := object{
		"id": r.id, "node_id": fmt.Sprintf("R_forgetest_%d", r.id), "name": r.Name, "full_name": r.fullName(),
		"owner": f.showUser(User{Login: r.Owner, Type: "Organization"}), "private": r.Private, "visibility": "public",
		"html_url": f.pageURL(r), "clone_url": f.pageURL(r) + ".git", "svn_url": f.pageURL(r),
		"git_url": "git" + strings.TrimPrefix(f.pageURL(r), "http") + ".git", "ssh_url": "git@127.0.0.1:" + r.fullName() + ".git",
		"default_branch": r.DefaultBranch, "archived": r.Archived,
		"open_issues": r.open(), "open_issues_count": r.open(),
		"created_at": r.created, "updated_at": r.created, "pushed_at": r.created,
	}
	if r.Private {
		shown["visibility"] = "private"
	}
	maps.Copy(shown, repositoryConstants)
	for field, path := range repositoryURLs {
		shown[field] = f.apiURL(r) + path
	}
	return shown
}

// open returns the number of open issues and pull requests.
func (r *Repository) open() int {
	count := 0
	for _, i := range r.issues {
		if i.State == "open" {
			count++
		}
	}
	return count
}

func (f *Forge) showRef(r *Repository, branch, sha string) object {
	return object{
		"ref": "refs/heads/" + branch, "node_id": "REF_forgetest_" + url.PathEscape(branch),
		"url":    f.apiURL(r) + "/git/refs/heads/" + (&url.URL{Path: branch}).EscapedPath(),
		"object": object{"type": "commit", "sha": sha, "url": f.commitURL(r, sha)},
	}
}

func (f *Forge) commitURL(r *Repository, sha string) string {
	return f.apiURL(r) + "/git/commits/" + sha
}

// showCommit returns a git commit in GitHub's form.
func (f *Forge) showCommit(r *Repository, c commit) object {
	parents := showAll(c.parents, func(sha string) object {
		return object{"sha": sha, "url": f.commitURL(r, sha), "html_url": f.pageURL(r) + "/commit/" + sha}
	})
	return object{
		"sha": c.sha, "node_id": "C_forgetest_" + c.sha, "url": f.commitURL(r, c.sha),
		"html_url": f.pageURL(r) + "/commit/" + c.sha, "message": c.message, "parents": parents,
		"author": c.author, "committer": c.committer,
		"tree":         object{"sha": c.tree, "url": f.apiURL(r) + "/git/trees/" + c.tree},
		"verification": f.showVerification(c),
	}
}

// showTree returns a tree in GitHub's form. listing is the output of git ls-tree.
func (f *Forge) showTree(r *Repository, id, listing string) object {
	entries := []object{}
	for line := range strings.SplitSeq(strings.TrimRight(listing, "\x00"), "\x00") {
		fields, path, _ := strings.Cut(line, "\t")
		part := strings.Fields(fields)
		if len(part) != 4 {
			continue
		}
		entry := object{"path": path, "mode": part[0], "type": part[1], "sha": part[2]}
		if size, err := strconv.Atoi(part[3]); err == nil {
			entry["size"], entry["url"] = size, f.apiURL(r)+"/git/blobs/"+part[2]
		}
		entries = append(entries, entry)
	}
	return object{"sha": id, "url": f.apiURL(r) + "/git/trees/" + id, "tree": entries, "truncated": false}
}

func (f *Forge) showVerification(c commit) object {
	if f.signed[c.sha] {
		return object{
			"verified": true, "reason": "valid", "signature": "-----BEGIN PGP SIGNATURE-----", "payload": "tree " + c.tree, "verified_at": c.committer.Date,
		}
	}
	return object{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
}
