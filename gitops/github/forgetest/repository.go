package forgetest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Repository is a repository of a Forge. Tests may change the exported fields between requests.
type Repository struct {
	Owner, Name   string
	Dir           string // path of the bare repository
	DefaultBranch string
	Private       bool
	Archived      bool // all writes are refused
	Topics        []string
	Access

	forge   *Forge
	lower   string // full name in lower case, for lookups and sorting
	id      int64
	created time.Time
	pushes  []push            // oldest first
	outputs map[string]string // of git, by its arguments
	tracker
}

// Access says who may do what in a repository.
type Access struct {
	// Collaborators lists the accounts that can be assigned, or asked for a review. Nil means all
	// accounts.
	Collaborators []string
	// Permissions maps accounts to roles: admin, maintain, write, triage, read or none. The default
	// is read, and admin for octocat. The token's account may push unless it has a role here without
	// that permission.
	Permissions map[string]string
	Rules       []Rule
	Protections map[string]Protection // by branch
}

// tracker has the issues, pull requests and workflows of a repository.
type tracker struct {
	lastNumber int
	issues     []*issue // by number

	workflowRuns []int64
	artifacts    []*artifact // by id
	setup        setup
	workflows    []*workflowRun
	checks       []*check
}

// AddRepository adds a repository without commits.
func (f *Forge) AddRepository(owner, name string) *Repository {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &Repository{
		Owner: owner, Name: name, Dir: filepath.Join(f.root, owner, name+".git"), DefaultBranch: "main",
		forge: f, id: f.newID(), created: f.now(), outputs: map[string]string{},
	}
	if err := r.initialise(); err != nil {
		f.t.Fatalf("add the repository %s/%s: %v", owner, name, err)
	}
	f.add(r)
	return r
}

// AddTwin adds a repository that shares the git folder of original, for API calls only. A test
// can add thousands of them quickly.
func (f *Forge) AddTwin(original *Repository, owner, name string) *Repository {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &Repository{Owner: owner, Name: name, Dir: original.Dir, DefaultBranch: original.DefaultBranch, forge: f, id: f.newID(), created: f.now(), outputs: original.outputs}
	f.add(r)
	return r
}

func (f *Forge) add(r *Repository) {
	f.repositories = append(f.repositories, r)
	r.lower = strings.ToLower(r.fullName())
	f.byName[r.lower] = r
}

// settings is the configuration of a bare repository. It permits the same fetches as github.com,
// and no housekeeping after a push.
const settings = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
[http]
	receivepack = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[receive]
	autogc = false
[gc]
	auto = 0
`

// initialise makes the bare repository.
func (r *Repository) initialise() error {
	return errors.Join(
		os.MkdirAll(filepath.Join(r.Dir, "objects"), 0o755), os.MkdirAll(filepath.Join(r.Dir, "refs", "heads"), 0o755),
		os.WriteFile(filepath.Join(r.Dir, "HEAD"), []byte("ref: refs/heads/"+r.DefaultBranch+"\n"), 0o644),
		os.WriteFile(filepath.Join(r.Dir, "config"), []byte(settings), 0o644),
	)
}

// Receive takes all objects of a checkout, and its commit as the branch main. It saves the processes of a first
// push, which sends only what the commit needs.
func (r *Repository) Receive(checkout string) {
	r.forge.t.Helper()
	commit, err := r.runGit("-C", checkout, "rev-parse", "HEAD")
	if err = errors.Join(
		err, os.CopyFS(filepath.Join(r.Dir, "objects"), os.DirFS(filepath.Join(checkout, ".git", "objects"))),
		os.WriteFile(filepath.Join(r.Dir, "refs", "heads", "main"), []byte(commit), 0o644),
	); err != nil {
		r.forge.t.Fatalf("receive %s: %v", checkout, err)
	}
}

// AddIssue adds an issue and returns its number. Issues and pull requests share one sequence of
// numbers. The test fails if i.Number is not above the last number.
func (r *Repository) AddIssue(i Issue) int {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	i.Number = cmp.Or(i.Number, r.lastNumber+1)
	if i.Number <= r.lastNumber {
		r.forge.t.Fatalf("the number %d is not beyond the last one of %s/%s, %d", i.Number, r.Owner, r.Name, r.lastNumber)
	}
	i.Author, i.Association = withDefaultAuthor(i.Author, i.Association)
	added := r.add(i)
	for _, each := range i.Comments {
		r.comment(added, each)
	}
	return added.Number
}

// add adds an issue. i.Number must be set.
func (r *Repository) add(i Issue) *issue {
	now := r.forge.now()
	state := cmp.Or(i.State, "open")
	i.State, i.Labels = "", slices.Clone(i.Labels)
	added := &issue{Issue: i, id: r.forge.newID(), created: now, updated: now}
	added.Comments = nil
	added.setState(state, now)
	r.issues = append(r.issues, added)
	r.lastNumber = i.Number
	return added
}

// comment adds a comment to an issue, with an id and times.
func (r *Repository) comment(i *issue, c Comment) *comment {
	c.ID = r.forge.newID()
	c.Author, c.Association = withDefaultAuthor(c.Author, c.Association)
	now := r.forge.now()
	added := &comment{Comment: c, created: now, updated: now}
	i.comments = append(i.comments, added)
	i.updated = now
	return added
}

// PullRequests returns copies of the pull requests, by number.
func (r *Repository) PullRequests() []PullRequest {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	var list []PullRequest
	for _, i := range r.issues {
		if i.pull != nil {
			list = append(list, i.copyForTests())
		}
	}
	return list
}

// SetPullRequest changes a pull request, except for its number and NodeID. The test fails if there
// is none with the number. change must not call the forge.
func (r *Repository) SetPullRequest(number int, change func(*PullRequest)) {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	i := r.knownPull(number)
	p := i.copyForTests()
	change(&p)
	i.applyTestChanges(p, r.forge.now())
}

// SetIssue changes an issue like an edit, except for its number and comments. The test fails if
// there is none with the number. change must not call the forge.
func (r *Repository) SetIssue(number int, change func(*Issue)) {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	i := r.knownIssue(number)
	state := i.State
	change(&i.Issue)
	i.Number = number
	changed := i.State
	i.State, i.updated = state, r.forge.now()
	i.setState(changed, i.updated)
}

// AddComment adds a comment to an issue or pull request and returns its id.
func (r *Repository) AddComment(number int, c Comment) int64 {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	return r.comment(r.knownIssue(number), c).ID
}

// AddReviewComment adds a comment on the diff of a pull request and returns its id.
func (r *Repository) AddReviewComment(number int, c ReviewComment) int64 {
	r.forge.t.Helper()
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	i := r.knownPull(number)
	added := &reviewComment{c, r.forge.newID(), r.forge.now()}
	i.pull.reviewComments = append(i.pull.reviewComments, added)
	return added.id
}

// Comments returns the comments of an issue or pull request, the oldest first. It returns nil if
// there is none with the number.
func (r *Repository) Comments(number int) []Comment {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	i := r.issue(number)
	if i == nil {
		return nil
	}
	var list []Comment
	for _, c := range i.comments {
		list = append(list, c.Comment)
	}
	return list
}

func (r *Repository) issue(number int) *issue {
	for _, i := range r.issues {
		if i.Number == number {
			return i
		}
	}
	return nil
}

// knownIssue returns an issue. The test fails if there is none with the number.
func (r *Repository) knownIssue(number int) *issue {
	r.forge.t.Helper()
	i := r.issue(number)
	if i == nil {
		r.forge.t.Fatalf("%s/%s has no issue #%d", r.Owner, r.Name, number)
	}
	return i
}

func (r *Repository) knownPull(number int) *issue {
	r.forge.t.Helper()
	i := r.issue(number)
	if i == nil || i.pull == nil {
		r.forge.t.Fatalf("%s/%s has no pull request #%d", r.Owner, r.Name, number)
	}
	return i
}

func (r *Repository) collaborator(login string) bool {
	return r.Collaborators == nil || slices.ContainsFunc(r.Collaborators, func(each string) bool {
		return strings.EqualFold(each, login)
	})
}

// repository returns a repository by owner and name, or nil. Like github.com, it ignores case.
func (f *Forge) repository(owner, name string) *Repository {
	return f.byName[strings.ToLower(owner+"/"+name)]
}

func (r *Repository) fullName() string { return fmt.Sprintf("%s/%s", r.Owner, r.Name) }
