package forgetest

import (
	"strconv"
	"strings"
)

func (f *Forge) pageURL(r *Repository) string { return f.URL + "/" + r.fullName() }

// showRepository returns a repository in the form that it has inside other replies.
func (f *Forge) showRepository(r *Repository) object {
	shown := object{
		"id": r.id, "name": r.Name, "full_name": r.fullName(), "owner": f.showUser(User{Login: r.Owner, Type: "Organization"}),
		"private": r.Private, "visibility": "public", "html_url": f.pageURL(r), "clone_url": f.pageURL(r) + ".git",
		"default_branch": r.DefaultBranch, "archived": r.Archived,
	}
	if r.Private {
		shown["visibility"] = "private"
	}
	return shown
}

func (f *Forge) showRef(branch, sha string) object {
	return object{"ref": "refs/heads/" + branch, "object": object{"type": "commit", "sha": sha}}
}

// showCommit returns a git commit in GitHub's form.
func (f *Forge) showCommit(r *Repository, c commit) object {
	return object{
		"sha": c.sha, "html_url": f.pageURL(r) + "/commit/" + c.sha, "message": c.message,
		"parents": showAll(c.parents, func(sha string) object { return object{"sha": sha} }),
		"author":  c.author, "committer": c.committer, "tree": object{"sha": c.tree}, "verification": f.showVerification(c),
	}
}

// showTree returns a tree in GitHub's form. listing is the output of git ls-tree.
func (f *Forge) showTree(id, listing string) object {
	entries := []object{}
	for line := range strings.SplitSeq(strings.TrimRight(listing, "\x00"), "\x00") {
		fields, path, _ := strings.Cut(line, "\t")
		part := strings.Fields(fields)
		if len(part) != 4 {
			continue
		}
		entry := object{"path": path, "mode": part[0], "type": part[1], "sha": part[2]}
		if size, err := strconv.Atoi(part[3]); err == nil {
			entry["size"] = size
		}
		entries = append(entries, entry)
	}
	return object{"sha": id, "tree": entries, "truncated": false}
}

func (f *Forge) showVerification(c commit) object {
	if f.signed[c.sha] {
		return object{"verified": true, "reason": "valid"}
	}
	return object{"verified": false, "reason": "unsigned"}
}
