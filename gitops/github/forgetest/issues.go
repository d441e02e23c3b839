package forgetest

import (
	"net/http"
	"slices"
	"strings"
)

func getIssue(f *Forge, c *call) answer { return ok(f.showIssue(c.repository, c.issue)) }

// edit changes fields that issues and pull requests share, unless it refuses a value. A nil value keeps the field.
func (i *issue) edit(f *Forge, title, body, state *string) (refusal answer, refused bool) {
	if reply, bad := tooLong(title, body); bad {
		return reply, true
	}
	if state != nil && *state != "open" && *state != "closed" {
		return invalid(reason{Resource: "Issue", Field: "state", Code: "invalid"}), true
	}
	if title != nil && *title == "" {
		return invalid(reason{Resource: "Issue", Field: "title", Code: "missing_field"}), true
	}
	i.updated = f.now()
	if title != nil {
		i.Title = *title
	}
	if body != nil {
		i.Body = *body
	}
	if state != nil {
		i.setState(*state, i.updated)
	}
	return answer{}, false
}

func listComments(f *Forge, c *call) answer {
	return page(f, c, c.issue.comments, func(each *comment) object {
		return f.showComment(c.repository, c.issue, each)
	})
}

type commentText struct{ Body string }

func (t commentText) refusal() (refusal answer, refused bool) {
	if strings.TrimSpace(t.Body) == "" {
		return refuse("IssueComment", "body", "Body cannot be blank"), true
	}
	return tooLong(nil, &t.Body)
}

func createComment(f *Forge, c *call, sent commentText) answer {
	if reply, bad := sent.refusal(); bad {
		return reply
	}
	added := c.repository.comment(c.issue, Comment{Author: f.user, Association: "OWNER", Body: sent.Body})
	return created(f.showComment(c.repository, c.issue, added))
}

func editComment(f *Forge, c *call, sent commentText) answer {
	if reply, bad := sent.refusal(); bad {
		return reply
	}
	c.comment.Body, c.comment.updated = sent.Body, f.now()
	return ok(f.showComment(c.repository, c.issue, c.comment))
}

func deleteComment(_ *Forge, c *call) answer {
	c.issue.comments = slices.DeleteFunc(c.issue.comments, func(each *comment) bool { return each == c.comment })
	return answer{status: http.StatusNoContent}
}

// commentByID returns a comment with its issue, or nil.
func (r *Repository) commentByID(id int64) (*issue, *comment) {
	for _, i := range r.issues {
		for _, each := range i.comments {
			if each.ID == id {
				return i, each
			}
		}
	}
	return nil, nil
}

// addLabels accepts {"labels": […]}.
func addLabels(f *Forge, c *call, sent struct{ Labels []string }) answer {
	c.issue.Labels = union(c.issue.Labels, sent.Labels)
	c.issue.updated = f.now()
	return ok(f.showLabels(c.issue.Labels))
}

const maxAssignees = 10

// addAssignees silently ignores accounts that cannot be assigned, like github.com.
func addAssignees(f *Forge, c *call, sent struct{ Assignees []string }) answer {
	able := slices.DeleteFunc(sent.Assignees, func(login string) bool { return !c.repository.collaborator(login) })
	all := union(c.issue.assignees, able)
	c.issue.assignees = all[:min(len(all), maxAssignees)]
	c.issue.updated = f.now()
	return created(f.showIssue(c.repository, c.issue))
}

// union returns list with the elements of more that it does not contain, ignoring case.
func union(list, more []string) []string {
	list = slices.Clone(list)
	for _, name := range more {
		if !slices.ContainsFunc(list, func(each string) bool { return strings.EqualFold(each, name) }) {
			list = append(list, name)
		}
	}
	return list
}
