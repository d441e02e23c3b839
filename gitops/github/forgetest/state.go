package forgetest

import (
	"cmp"
	"slices"
	"time"
)

// User is an account. ID 0 means one made of the login, Type "" means User.
type User struct {
	Login string
	ID    int64
	Type  string // User, Bot or Organization
}

// Issue is an issue to add. A zero Author means octocat, as OWNER unless Association is set.
type Issue struct {
	Number      int // 0 means the next
	Title, Body string
	State       string // "" means open
	PullRequest bool   // it is answered as a pull request's issue, without one behind it
	Author      User
	Association string // "" means NONE for an author that was named
	Labels      []string
	Comments    []Comment
}

// Comment is a comment of an issue or pull request, with the author and the
// association of Issue.
type Comment struct {
	ID          int64 // given by the forge
	Author      User
	Association string
	Body        string
}

type PullRequest struct {
	Number      int
	NodeID      string
	State       string // open or closed
	Title, Body string
	Head, Base  string // branches
	Draft       bool
	Merged      bool
	Labels      []string
	Assignees   []string
	Reviewers   []string
	Teams       []string // asked for a review
	// HeadRepository is the OWNER/NAME of the fork with Head, or "".
	HeadRepository string
	// Mergeable overrides the state computed by git.
	Mergeable string
}

type ReviewComment struct {
	ReviewID       int64
	Author         User
	Path, DiffHunk string
	Line           int
	StartLine      int // of a comment on several lines; else 0
	Body           string
}

// issue is an issue or pull request of the forge.
type issue struct {
	Issue
	id               int64
	assignees        []string
	created, updated time.Time
	closed           time.Time // zero while open
	comments         []*comment
	pull             *pull
}

type comment struct {
	Comment
	created, updated time.Time
}

type pull struct {
	nodeID           string
	head, base       string
	headSHA, baseSHA string // as they were last seen
	draft, merged    bool
	reviewers, teams []string
	reviewComments   []*reviewComment
	reviews          []*review
	headRepository   string
	mergeable        string
}

type reviewComment struct {
	ReviewComment
	id      int64
	created time.Time
}

func authored(author User, association string) (User, string) {
	if author == (User{}) {
		return octocat, cmp.Or(association, "OWNER")
	}
	return author, cmp.Or(association, "NONE")
}

func (i *issue) setState(state string, now time.Time) {
	if i.State == state {
		return
	}
	i.State, i.closed = state, time.Time{}
	if state == "closed" {
		i.closed = now
	}
}

func (i *issue) exported() PullRequest {
	return PullRequest{
		Number: i.Number, NodeID: i.pull.nodeID, State: i.State, Title: i.Title, Body: i.Body,
		Head: i.pull.head, Base: i.pull.base, Draft: i.pull.draft, Merged: i.pull.merged,
		Labels: slices.Clone(i.Labels), Assignees: slices.Clone(i.assignees),
		Reviewers: slices.Clone(i.pull.reviewers), Teams: slices.Clone(i.pull.teams),
		HeadRepository: i.pull.headRepository, Mergeable: i.pull.mergeable,
	}
}

// take applies a test's changes. Number and node id stay.
func (i *issue) take(p PullRequest, now time.Time) {
	i.setState(p.State, now)
	i.Title, i.Body, i.updated = p.Title, p.Body, now
	i.Labels, i.assignees = p.Labels, p.Assignees
	i.pull.head, i.pull.base, i.pull.draft, i.pull.merged = p.Head, p.Base, p.Draft, p.Merged
	i.pull.reviewers, i.pull.teams = p.Reviewers, p.Teams
	i.pull.headRepository, i.pull.mergeable = p.HeadRepository, p.Mergeable
}
