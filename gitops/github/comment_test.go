package github_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestCreatesListsAndDeletesComments(t *testing.T) {
	server, repository, handle := newForge(t)
	pull := topicPull(t, handle)
	for range 120 { // more than a page
		repository.AddComment(pull.Number, forgetest.Comment{Body: "of somebody"})
	}
	added := must.Get(handle.CreateComment(t.Context(), pull.Number, "ours"))(t)
	comments, err := handle.Comments(t.Context(), pull.Number)
	if err != nil || len(comments) != 121 || comments[120].ID != added.ID || comments[120].Author.ID != pull.Author.ID {
		t.Fatalf("%d comments, %v", len(comments), err)
	}
	for range 2 { // one that is gone already is no error
		must.Do(t, handle.DeleteComment(t.Context(), added.ID), "DeleteComment")
	}
	must.Same(t, 120, len(repository.Comments(pull.Number)), "comments are left")
	server.On("DELETE", "/repos/octo/widgets/issues/comments/*", forgetest.Reply{Status: 403, Body: `{"message": "no"}`}, 1)
	must.Same(t, forge.Forbidden, forge.KindOf(handle.DeleteComment(t.Context(), comments[0].ID)), "DeleteComment that is refused")
}
