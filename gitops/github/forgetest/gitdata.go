package forgetest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
)

// The calls below read and write branches and objects with the git program.

// getRef answers with the commit of a branch.
func getRef(f *Forge, c *call) answer {
	if c.repository.empty() {
		return failure(http.StatusConflict, "Git Repository is empty.")
	}
	branch, isBranch := strings.CutPrefix(c.PathValue("ref"), "heads/")
	if !isBranch {
		return notFound()
	}
	sha, found := c.repository.branch(branch)
	if !found {
		return notFound()
	}
	return ok(f.showRef(branch, sha))
}

// getCommit answers with a commit.
func getCommit(f *Forge, c *call) answer {
	if c.repository.empty() {
		return failure(http.StatusConflict, "Git Repository is empty.")
	}
	found, known := c.repository.commit(c.PathValue("sha"))
	if !known {
		return notFound()
	}
	return ok(f.showCommit(c.repository, found))
}

// createBlob stores the content of a file, as text or base64.
func createBlob(f *Forge, c *call, sent struct{ Content, Encoding string }) answer {
	content := sent.Content
	if sent.Encoding == "base64" {
		decoded, err := base64.StdEncoding.DecodeString(sent.Content)
		if err != nil {
			return unprocessable("content is not valid Base64")
		}
		content = string(decoded)
	}
	id := strings.TrimSpace(c.repository.mustGit(nil, content, "hash-object", "-w", "--stdin"))
	return created(object{"sha": id})
}

// treeChange is an entry of a tree to create. If SHA is null, it deletes the path.
type treeChange struct {
	Path, Mode, Type string
	SHA              *string
	Content          *string
}

type newTree struct {
	Base string `json:"base_tree"`
	Tree []treeChange
}

// createTree makes a tree from the base tree and changes, with an index of its own.
func createTree(f *Forge, c *call, sent newTree) answer {
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(f.t.TempDir(), "index")}
	r := c.repository
	if sent.Base != "" {
		if _, err := r.runGitWith(index, "", "read-tree", sent.Base); err != nil {
			return notFound()
		}
	}
	names := strings.Split(r.mustGit(index, "", "ls-files", "-z"), "\x00")
	var lines strings.Builder
	for _, change := range sent.Tree {
		line, reply, bad := change.indexLine(r, names)
		if bad {
			return reply
		}
		lines.WriteString(line + "\x00")
	}
	// With --replace, a file can replace a folder, and the reverse.
	if _, err := r.runGitWith(index, lines.String(), "update-index", "-z", "--replace", "--index-info"); err != nil {
		return unprocessable(err.Error())
	}
	out, err := r.runGitWith(index, "", "write-tree")
	if err != nil {
		return unprocessable("tree.sha is not valid: " + err.Error())
	}
	id := strings.TrimSpace(out)
	return created(f.showTree(id, r.mustGit(nil, "", "ls-tree", "-z", "-l", "--full-tree", id)))
}

// indexLine returns the change as an input line of git update-index. names lists the files of the
// base tree. If bad is true, reply is the refusal.
func (t treeChange) indexLine(r *Repository, names []string) (line string, reply answer, bad bool) {
	switch t.Mode {
	case "100644", "100755", "040000", "160000", "120000":
	default:
		return "", unprocessable("tree.mode " + t.Mode + " is not supported"), true
	}
	if t.Content != nil {
		return "", unprocessable("the forge takes blobs alone"), true
	}
	if t.SHA == nil {
		if !slices.Contains(names, t.Path) {
			return "", unprocessable("GitRPC::BadObjectState"), true // like github.com, which refuses to delete a missing file
		}
		return "0 " + strings.Repeat("0", 40) + "\t" + t.Path, answer{}, false
	}
	if t.Type == "blob" {
		if kind, err := r.runGit("cat-file", "-t", *t.SHA); err != nil || strings.TrimSpace(kind) != "blob" {
			return "", unprocessable("tree.sha " + *t.SHA + " is not a valid blob"), true
		}
	}
	return fmt.Sprintf("%s %s\t%s", t.Mode, *t.SHA, t.Path), answer{}, false
}

type newCommit struct {
	Message, Tree     string
	Parents           []string
	Author, Committer *struct{ Name, Email string }
}

// createCommit makes a commit. Like github.com, it signs it if the token's account is a bot and the
// request names no author or committer.
func createCommit(f *Forge, c *call, sent newCommit) answer {
	if kind, err := c.repository.runGit("cat-file", "-t", sent.Tree); err != nil || strings.TrimSpace(kind) != "tree" {
		return unprocessable("Tree SHA does not exist")
	}
	args := []string{"commit-tree", sent.Tree}
	for _, parent := range sent.Parents {
		if _, known := c.repository.commit(parent); !known {
			return unprocessable("Parent SHA does not exist or is not a commit object")
		}
		args = append(args, "-p", parent)
	}
	date := f.now().Format("2006-01-02T15:04:05Z")
	address := fmt.Sprintf("%d+%s@users.noreply.github.com", f.user.ID, f.user.Login)
	env := []string{
		"GIT_AUTHOR_NAME=" + f.user.Login, "GIT_AUTHOR_EMAIL=" + address, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.com", "GIT_COMMITTER_DATE=" + date,
	}
	sha := strings.TrimSpace(c.repository.mustGit(env, sent.Message, args...))
	f.signed[sha] = f.user.Type == "Bot" && sent.Author == nil && sent.Committer == nil
	made, _ := c.repository.commit(sha)
	return created(f.showCommit(c.repository, made))
}

// createRef makes a branch at a commit. It refuses an existing branch.
func createRef(f *Forge, c *call, sent struct{ Ref, SHA string }) answer {
	branch, isBranch := strings.CutPrefix(sent.Ref, "refs/heads/")
	if !isBranch {
		return unprocessable("Reference name is not valid")
	}
	if _, known := c.repository.commit(sent.SHA); !known {
		return unprocessable("Object does not exist")
	}
	if _, there := c.repository.branch(branch); there {
		return unprocessable("Reference already exists")
	}
	if _, err := c.repository.runGit("update-ref", sent.Ref, sent.SHA, strings.Repeat("0", 40)); err != nil {
		return unprocessable(err.Error())
	}
	c.repository.recordPush(push{ref: sent.Ref, after: sent.SHA, by: f.user})
	return created(f.showRef(branch, sent.SHA))
}

// compareCommits answers with the relation of two commits. It omits the commits and files between
// them.
func compareCommits(f *Forge, c *call) answer {
	base, head, found := strings.Cut(c.PathValue("range"), "...")
	if !found {
		return notFound()
	}
	for _, end := range []string{base, head} {
		if _, known := c.repository.commit(end); !known {
			return notFound()
		}
	}
	ahead, behind := c.repository.commitsBetween(base, head), c.repository.commitsBetween(head, base)
	status := "diverged"
	switch {
	case ahead == 0 && behind == 0:
		status = "identical"
	case behind == 0:
		status = "ahead"
	case ahead == 0:
		status = "behind"
	}
	return ok(object{"status": status, "ahead_by": ahead, "behind_by": behind, "total_commits": ahead, "commits": []object{}, "files": []object{}})
}
