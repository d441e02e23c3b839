package forge

import (
	"slices"
	"strings"
	"time"
)

// MaxComments is the largest number of comments read for an issue or pull request, the oldest
// first.
const MaxComments = 1000

// MaxAttachment is the largest attached image in bytes, as on GitHub
// (https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/attaching-files).
const MaxAttachment = 10 << 20

// Issue is an issue with its comments. On a forge that numbers pull requests like issues, it may be
// a pull request; then PullRequest is true.
type Issue struct {
	Title       string
	Body        string
	State       string // open or closed
	URL         string
	PullRequest bool
	Author      User
	Labels      []string
	UpdatedAt   time.Time // last change of text, labels or comments
	Comments    []Comment // up to MaxComments, the oldest first
	// MoreComments is the number of comments that were not read.
	MoreComments int
}

// Comment is a comment of an issue or pull request, or the text of a review. Reviews have neither
// Association nor times here.
type Comment struct {
	ID          int64
	Author      User
	Association string // of the author: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, …, NONE
	Body        string
	URL         string
	CreatedAt   time.Time
	UpdatedAt   time.Time // later than CreatedAt if the comment was edited
}

// SameText compares texts, ignoring line ends and surrounding white space, which forges change.
func SameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
}

// HasName reports whether a label, login or slug is in a list. Forges ignore its case.
func HasName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return strings.EqualFold(other, name) })
}

// MissingNames returns the wanted names that are not in a list.
func MissingNames(wanted, list []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return HasName(list, name) })
}

// ReviewComment is a comment on a line of a pull request's diff.
type ReviewComment struct {
	ID        int64
	ReviewID  int64 // the review that the comment is part of
	Author    User
	Path      string
	DiffHunk  string
	Body      string
	CreatedAt time.Time
	UpdatedAt time.Time // later than CreatedAt if the comment was edited, or submitted with a review
}
