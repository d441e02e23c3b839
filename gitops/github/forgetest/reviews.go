package forgetest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Review is a review of a pull request.
type Review struct {
	ID       int64 // set by the forge
	Author   User
	Body     string
	State    string // COMMENTED, APPROVED, CHANGES_REQUESTED, PENDING
	CommitID string
}

type review struct {
	Review
	submitted time.Time
}

// Reviews returns the reviews of a pull request, the oldest first.
func (r *Repository) Reviews(number int) []Review {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	var list []Review
	for _, each := range r.knownPull(number).pull.reviews {
		list = append(list, each.Review)
	}
	return list
}

// ReviewComments returns the comments on the diff of a pull request, the oldest first.
func (r *Repository) ReviewComments(number int) []ReviewComment {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	var list []ReviewComment
	for _, each := range r.knownPull(number).pull.reviewComments {
		list = append(list, each.ReviewComment)
	}
	return list
}

func listReviews(f *Forge, c *call) answer {
	return page(f, c, c.issue.pull.reviews, func(each *review) object { return f.showReview(c.repository, c.issue, each) })
}

type newReview struct {
	CommitID string `json:"commit_id"`
	Body     string
	Event    string
	Comments []newReviewComment
}

type newReviewComment struct {
	Path, Body, Side string
	Line             int
	StartLine        int    `json:"start_line"`
	StartSide        string `json:"start_side"`
}

var reviewStates = map[string]string{"": "PENDING", "COMMENT": "COMMENTED", "APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}

// createReview creates a review with all its comments, or refuses it, like github.com.
func createReview(f *Forge, c *call, sent newReview) answer {
	r, p := c.repository, c.issue.pull
	p.headSHA, p.baseSHA = r.tip(p.head, p.headSHA), r.tip(p.base, p.baseSHA)
	if sent.CommitID == "" {
		sent.CommitID = p.headSHA
	}
	if wrong := sent.refusalReason(f, c); wrong != "" {
		return refuseSimply(wrong)
	}
	added := &review{Review{f.newID(), f.user, sent.Body, reviewStates[sent.Event], sent.CommitID}, f.now()}
	p.reviews = append(p.reviews, added)
	for _, each := range sent.Comments {
		p.reviewComments = append(p.reviewComments, &reviewComment{
			ReviewComment{
				ReviewID: added.ID, Author: f.user, Path: each.Path, Line: each.Line, StartLine: each.StartLine,
				DiffHunk: "@@ of the forge @@", Body: each.Body,
			}, f.newID(), added.submitted,
		})
	}
	c.issue.updated = added.submitted
	return ok(f.showReview(r, c.issue, added))
}

// refusalReason returns the reason to refuse a review, or "". Reasons are github.com's.
func (n newReview) refusalReason(f *Forge, c *call) string {
	state, known := reviewStates[n.Event]
	switch {
	case !known:
		return "Variable $event of type PullRequestReviewEvent was provided invalid value"
	case state != "COMMENTED" && state != "PENDING" && strings.EqualFold(c.issue.Author.Login, f.user.Login):
		return "Can not approve or request changes on your own pull request"
	case state == "COMMENTED" && strings.TrimSpace(n.Body) == "" && len(n.Comments) == 0:
		return "Review body can't be blank"
	}
	if reply, bad := tooLong(nil, &n.Body); bad {
		return fmt.Sprint(reply.body)
	}
	files, found := c.repository.filesOf(c.issue.pull, n.CommitID)
	if !found {
		return "The commit_id is not part of the pull request"
	}
	for _, each := range n.Comments {
		if wrong := each.refusalReason(files); wrong != "" {
			return wrong
		}
	}
	return ""
}

// refusalReason returns the reason to refuse a comment of a review, or "". files are the files of the diff.
func (n newReviewComment) refusalReason(files []pullFile) string {
	i := slices.IndexFunc(files, func(f pullFile) bool { return f.path == n.Path })
	switch {
	case strings.TrimSpace(n.Body) == "":
		return "Body can't be blank"
	case i < 0:
		return "Path could not be resolved"
	case n.Side != "RIGHT" || cmp.Or(n.StartSide, "RIGHT") != "RIGHT":
		return "the forge knows the right side of diffs alone"
	case !files[i].hasLine(n.Line):
		return "Line could not be resolved"
	case n.StartLine != 0 && (n.StartLine >= n.Line || !files[i].hasLine(n.StartLine)):
		return "Start line must precede the end line, and be part of the same hunk as the line"
	}
	if reply, bad := tooLong(nil, &n.Body); bad {
		return fmt.Sprint(reply.body)
	}
	return ""
}

// refuseSimply refuses a review. GitHub's description has a list of texts for its errors.
func refuseSimply(message string) answer {
	reply := unprocessable("Unprocessable Entity")
	reply.body.(object)["errors"] = []string{message}
	return reply
}

// pullFile is a file of a pull request's diff.
type pullFile struct {
	path, from, status, sha, patch string
	added, removed                 int
}

var hunkHead = regexp.MustCompile(`(?m)^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)

// hasLine reports whether a line of the new file is in a hunk.
func (p pullFile) hasLine(line int) bool {
	for _, m := range hunkHead.FindAllStringSubmatch(p.patch, -1) {
		first, _ := strconv.Atoi(m[1])
		count := 1
		if m[2] != "" {
			count, _ = strconv.Atoi(m[2])
		}
		if line >= first && line < first+count {
			return true
		}
	}
	return false
}

// filesOf returns the files that a pull request changes: those that differ between the merge base
// and a commit of it. It returns false for an unknown commit.
func (r *Repository) filesOf(p *pull, commit string) ([]pullFile, bool) {
	if !objectName.MatchString(commit) {
		return nil, false
	}
	listing, err := r.runGit("diff", "--raw", "--no-abbrev", "-z", "--find-renames", p.baseSHA+"..."+commit)
	if err != nil {
		return nil, false
	}
	var files []pullFile
	fields := strings.Split(strings.TrimSuffix(listing, "\x00"), "\x00")
	for len(fields) >= 2 {
		head := strings.Fields(strings.TrimPrefix(fields[0], ":"))
		file := pullFile{path: fields[1], sha: head[3], status: map[byte]string{'A': "added", 'D': "removed", 'R': "renamed"}[head[4][0]]}
		fields = fields[2:]
		if file.status == "" {
			file.status = "modified"
		}
		if file.status == "renamed" {
			file.from, file.path, fields = file.path, fields[0], fields[1:]
		}
		files = append(files, r.withPatch(file, p.baseSHA, commit))
	}
	return files, true
}

// withPatch adds the hunks and the numbers of changed lines to a file. Like github.com, it adds
// none for a binary file.
func (r *Repository) withPatch(file pullFile, base, commit string) pullFile {
	paths := []string{file.path}
	if file.from != "" {
		paths = append(paths, file.from)
	}
	out, _ := r.runGit(append([]string{"diff", "--find-renames", base + "..." + commit, "--"}, paths...)...)
	if at := strings.Index(out, "\n@@ "); at >= 0 {
		file.patch = strings.TrimRight(out[at+1:], "\n")
	}
	for line := range strings.Lines(file.patch) {
		switch line[0] {
		case '+':
			file.added++
		case '-':
			file.removed++
		}
	}
	return file
}

func listPullFiles(f *Forge, c *call) answer {
	r, p := c.repository, c.issue.pull
	if !p.merged { // a merged pull request keeps the files it had at the merge
		p.headSHA, p.baseSHA = r.tip(p.head, p.headSHA), r.tip(p.base, p.baseSHA)
	}
	files, _ := r.filesOf(p, p.headSHA)
	return page(f, c, files, showPullFile)
}

// showPullFile returns a file of a pull request in GitHub's form.
func showPullFile(file pullFile) object {
	shown := object{
		"sha": file.sha, "filename": file.path, "status": file.status,
		"additions": file.added, "deletions": file.removed, "changes": file.added + file.removed,
	}
	if file.patch != "" {
		shown["patch"] = file.patch
	}
	if file.from != "" {
		shown["previous_filename"] = file.from
	}
	return shown
}

// showReview returns a review in GitHub's form.
func (f *Forge) showReview(r *Repository, i *issue, v *review) object {
	return object{
		"id": v.ID, "user": f.showUser(v.Author), "body": v.Body, "state": v.State,
		"html_url": fmt.Sprintf("%s/pull/%d#pullrequestreview-%d", f.pageURL(r), i.Number, v.ID), "commit_id": v.CommitID, "submitted_at": v.submitted, "author_association": "MEMBER",
	}
}
