package forgetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func listPulls(f *Forge, c *call) answer {
	list := slices.DeleteFunc(slices.Clone(c.repository.issues), func(i *issue) bool {
		return i.pull == nil || !passesFilters(c, i)
	})
	sortPulls(c, list)
	return page(f, c, list, func(i *issue) object { return f.showPull(c.repository, i) })
}

// passesFilters reports whether a pull request passes the filters of a list. Like github.com, it ignores a
// head that is not OWNER:BRANCH.
func passesFilters(c *call, i *issue) bool {
	query := c.URL.Query()
	if state := cmp.Or(query.Get("state"), "open"); state != "all" && state != i.State {
		return false
	}
	if base := query.Get("base"); base != "" && base != i.pull.base {
		return false
	}
	owner, head, filtered := strings.Cut(query.Get("head"), ":")
	return !filtered || head == i.pull.head && strings.EqualFold(owner, c.repository.Owner)
}

// sortPulls sorts by creation or update time. By creation time, the default is newest first.
func sortPulls(c *call, list []*issue) {
	query := c.URL.Query()
	byUpdate := query.Get("sort") == "updated"
	slices.SortStableFunc(list, func(a, b *issue) int {
		if byUpdate {
			return a.updated.Compare(b.updated)
		}
		return a.created.Compare(b.created)
	})
	direction := query.Get("direction")
	if direction == "desc" || direction == "" && !byUpdate {
		slices.Reverse(list)
	}
}

type newPull struct {
	Title, Body, Head, Base string
	Draft                   bool
}

// createPull opens a pull request from a branch of the repository.
func createPull(f *Forge, c *call, sent newPull) answer {
	if owner, branch, qualified := strings.Cut(sent.Head, ":"); qualified && strings.EqualFold(owner, c.repository.Owner) {
		sent.Head = branch
	}
	if reply, bad := sent.refusal(c.repository); bad {
		return reply
	}
	i := c.repository.add(Issue{
		Number: c.repository.lastNumber + 1, Title: sent.Title, Body: sent.Body,
		PullRequest: true, Author: f.user, Association: "OWNER",
	})
	i.pull = &pull{
		nodeID: fmt.Sprintf("PR_forgetest_%d_%d", c.repository.id, i.Number),
		head:   sent.Head, base: sent.Base, draft: sent.Draft,
	}
	return created(f.showFullPull(c.repository, i))
}

// refusal refuses a wrong new pull request. The order of checks is github.com's.
func (n newPull) refusal(r *Repository) (refusal answer, refused bool) {
	if n.Title == "" {
		return invalid(reason{Resource: "Issue", Field: "title", Code: "missing_field"}), true
	}
	if reply, bad := tooLong(&n.Title, &n.Body); bad {
		return reply, true
	}
	base, found := r.branch(n.Base)
	if !found {
		return invalid(reason{Resource: "PullRequest", Field: "base", Code: "invalid"}), true
	}
	head, found := r.branch(n.Head)
	if !found {
		return invalid(reason{Resource: "PullRequest", Field: "head", Code: "invalid"}), true
	}
	if r.openPull(n.Head, n.Base) != nil {
		return refuse("PullRequest", "", "A pull request already exists for %s:%s.", r.Owner, n.Head), true
	}
	if r.commitsBetween(base, head) == 0 {
		return refuse("PullRequest", "", "No commits between %s and %s", n.Base, n.Head), true
	}
	return answer{}, false
}

func (r *Repository) openPull(head, base string) *issue {
	for _, i := range r.issues {
		if i.pull != nil && i.State == "open" && i.pull.head == head && i.pull.base == base {
			return i
		}
	}
	return nil
}

func getPull(f *Forge, c *call) answer { return ok(f.showFullPull(c.repository, c.issue)) }

// editPull changes title, body or state of a pull request.
func editPull(f *Forge, c *call, edit struct{ Title, Body, State *string }) answer {
	i := c.issue
	if reopens := edit.State != nil && *edit.State == "open" && i.State == "closed"; reopens {
		if reply, bad := i.pull.cannotReopen(c.repository); bad {
			return reply
		}
	}
	if reply, bad := i.edit(f, edit.Title, edit.Body, edit.State); bad {
		return reply
	}
	return getPull(f, c)
}

// cannotReopen refuses to open a closed pull request again if that is impossible.
func (p *pull) cannotReopen(r *Repository) (refusal answer, refused bool) {
	if p.merged {
		return refuse("PullRequest", "state", "state cannot be changed. The pull request was merged."), true
	}
	if _, found := r.branch(p.head); !found {
		return refuse("PullRequest", "state", "state cannot be changed. The %s branch has been deleted.", p.head), true
	}
	if r.openPull(p.head, p.base) != nil {
		return refuse("PullRequest", "state", "state cannot be changed. There is already an open pull request from %s to %s.", p.head, p.base), true
	}
	return answer{}, false
}

type reviewersRequest struct {
	Reviewers []string
	Teams     []string `json:"team_reviewers"`
}

// requestReviewers requests reviews. It refuses the author and accounts that are not collaborators.
func requestReviewers(f *Forge, c *call, sent reviewersRequest) answer {
	for _, login := range sent.Reviewers {
		if strings.EqualFold(login, c.issue.Author.Login) {
			return unprocessable("Review cannot be requested from pull request author.")
		}
		if !c.repository.collaborator(login) {
			return unprocessable("Reviews may only be requested from collaborators. " +
				"One or more of the users or teams you specified is not a collaborator of the " + c.repository.fullName() + " repository.")
		}
	}
	p := c.issue.pull
	p.reviewers, p.teams = union(p.reviewers, sent.Reviewers), union(p.teams, sent.Teams)
	c.issue.updated = f.now()
	return created(f.showPull(c.repository, c.issue))
}

func listReviewComments(f *Forge, c *call) answer {
	return page(f, c, c.issue.pull.reviewComments, func(each *reviewComment) object {
		return f.showReviewComment(c.repository, c.issue, each)
	})
}
