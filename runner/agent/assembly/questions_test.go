package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/tools/question"
)

// board is an issue, and what is done to its comments.
type board struct {
	forge.Repository
	comments                       []forge.Comment
	unread, uneditable, unwritable error
	did                            []string
}

func (b *board) Comments(context.Context, int) ([]forge.Comment, error) { return b.comments, b.unread }

func (b *board) EditComment(_ context.Context, id int64, body string) error {
	b.did = append(b.did, "edit")
	if b.uneditable != nil {
		return b.uneditable
	}
	i := slices.IndexFunc(b.comments, func(c forge.Comment) bool { return c.ID == id })
	b.comments[i].Body = body
	return nil
}

func (b *board) CreateComment(_ context.Context, _ int, body string) (*forge.Comment, error) {
	b.did = append(b.did, "create")
	if b.unwritable != nil {
		return nil, b.unwritable
	}
	b.comments = append(b.comments, forge.Comment{ID: int64(100 + len(b.comments)), Body: body})
	return &b.comments[len(b.comments)-1], nil
}

// account is a forge with one issue, on which the token belongs to Worker.
type account struct {
	forge.Forge
	*board
}

func (a account) Repository(string) forge.Repository { return a.board }

func (a account) Viewer(context.Context) (forge.User, error) { return forge.User{Login: "Worker"}, nil }

// askedOn asks two questions, one after the other, on a board.
func askedOn(t *testing.T, b *board) error {
	t.Helper()
	p := &IssuePeople{
		Forge: account{board: b}, Issue: form.Issue{Repository: "o/r", Number: 7},
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter22", "[secret]") },
	}
	first := []question.Question{{Question: "Is it hunter22?"}}
	if err := p.Ask(t.Context(), first); err != nil {
		return err
	}
	return p.Ask(t.Context(), append(first, question.Question{Question: "Why?"}))
}

func TestPostsQuestionsInOneComment(t *testing.T) {
	own, person := forge.User{Login: "worker"}, forge.User{Login: "octocat"}
	earlier := forge.Comment{ID: 1, Author: own, Body: intake.QuestionsMark + "1. Who?"}
	for name, test := range map[string]struct {
		board board
		did   []string
		in    int // comment that holds them
	}{
		"a new one":                         {board{}, []string{"create", "edit"}, 0},
		"where what was said can't be read": {board{unread: errors.New("gone")}, []string{"create", "edit"}, 0},
		"that of an earlier run":            {board{comments: []forge.Comment{earlier}}, []string{"edit", "edit"}, 0},
		"before a run's progress": {
			board{comments: []forge.Comment{earlier, {ID: 2, Author: own, Body: intake.ProgressMark + "At work."}}},
			[]string{"edit", "edit"},
			0,
		},
		"not one that a person answered": {
			board{comments: []forge.Comment{earlier, {ID: 2, Author: person, Body: "Me."}}},
			[]string{"create", "edit"},
			2,
		},
		"not one that a person wrote": {
			board{comments: []forge.Comment{{ID: 1, Author: person, Body: earlier.Body}}},
			[]string{"create", "edit"},
			1,
		},
		"a new one where it is gone": {
			board{comments: []forge.Comment{earlier}, uneditable: errors.New("gone")},
			[]string{"edit", "create", "edit", "create"},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := test.board
			must.Do(t, askedOn(t, &b))
			must.Same(t, test.did, b.did)
			text := b.comments[test.in].Body
			if !strings.HasPrefix(text, intake.QuestionsMark) || !strings.Contains(text, "1. Is it [secret]?") || !strings.Contains(text, "2. Why?") {
				t.Errorf("it is %q", text)
			}
		})
	}
}

func TestFailsWithoutReaderOfQuestions(t *testing.T) {
	b := board{unwritable: errors.New("forbidden")}
	must.Same(t, "comment on o/r#7: forbidden", fmt.Sprint(askedOn(t, &b)))
}

// mostUnits is how long GitHub lets a comment be, in UTF-16 code units.
const mostUnits = 65_536

func TestBoundsQuestions(t *testing.T) {
	long := strings.Repeat("@", 20_000)
	options := slices.Repeat([]question.Option{{Label: long, Description: long}}, 50)
	questions := slices.Repeat([]question.Question{{Question: long, Options: options}}, 200)
	text := questionsComment(questions)
	if units := markdown.Units(text); units > mostUnits {
		t.Errorf("they have %d units", units)
	}
	must.Contain(t, text, " more ")
	must.Contain(t, questionsComment(questions[:1]), "1. @")
}
