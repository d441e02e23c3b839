package forgetest

import (
	"cmp"
	"slices"
	"time"
)

// User is an account. If ID is 0, the forge computes it from the login. If Type is "", it is User.
type User struct {
	Login string
	ID    int64
	Type  string // User, Bot or Organization
}

// Issue is an issue to add. A zero Author means octocat, with the association OWNER if none is set.
type Issue struct {
	Number      int // 0 means the next number
	Title, Body string
	State       string // "" means open
	PullRequest bool   // the issue is shown as that of a pull request, although there is none
	Author      User
	Association string // "" means NONE if Author is set
	Labels      []string
	Comments    []Comment
}

// Comment is a comment of an issue or pull request. Author and Association have the same defaults
// as in Issue.
type Comment struct {
	ID          int64 // set by the forge
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
	Teams       []string // teams asked for a review
	// HeadRepository is the OWNER/NAME of the fork that contains Head, or "".
	HeadRepository string
	// Mergeable replaces the state that the forge computes with git.
	Mergeable string
}

type ReviewComment struct {
	ReviewID       int64
	Author         User
	Path, DiffHunk string
	Line           int
	StartLine      int // first line of a comment on several lines; else 0
	Body           string
}

// issue is an issue or pull request of the forge.
type issue struct {
	Issue
	id               int64
	assignees        []string
	created, updated time.Time
	closed           time.Time // zero while the issue is open
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
	headSHA, baseSHA string // last known commits of head and base
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

// withDefaultAuthor returns the author and association with their defaults.
func withDefaultAuthor(author User, association string) (User, string) {
	if author == (User{}) {
		return octocat, cmp.Or(association, "OWNER")
	}
	return author, cmp.Or(association, "NONE")
}

// setState opens or closes an issue and sets the time it was closed.
func (i *issue) setState(state string, now time.Time) {
	if i.State == state {
		return
	}
	i.State, i.closed = state, time.Time{}
	if state == "closed" {
		i.closed = now
	}
}

// copyForTests returns a copy of a pull request for tests.
func (i *issue) copyForTests() PullRequest {
	return PullRequest{
		Number: i.Number, NodeID: i.pull.nodeID, State: i.State, Title: i.Title, Body: i.Body,
		Head: i.pull.head, Base: i.pull.base, Draft: i.pull.draft, Merged: i.pull.merged,
		Labels: slices.Clone(i.Labels), Assignees: slices.Clone(i.assignees),
		Reviewers: slices.Clone(i.pull.reviewers), Teams: slices.Clone(i.pull.teams),
		HeadRepository: i.pull.headRepository, Mergeable: i.pull.mergeable,
	}
}

// applyTestChanges applies changes of a test. It keeps the number and the node id.
func (i *issue) applyTestChanges(p PullRequest, now time.Time) {
	i.setState(p.State, now)
	i.Title, i.Body, i.updated = p.Title, p.Body, now
	i.Labels, i.assignees = p.Labels, p.Assignees
	i.pull.head, i.pull.base, i.pull.draft, i.pull.merged = p.Head, p.Base, p.Draft, p.Merged
	i.pull.reviewers, i.pull.teams = p.Reviewers, p.Teams
	i.pull.headRepository, i.pull.mergeable = p.HeadRepository, p.Mergeable
}
