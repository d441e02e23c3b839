package github_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func setupOf(t *testing.T, server *forgetest.Forge) github.Setup {
	t.Helper()
	client, err := github.New(github.Options{APIURL: server.APIURL, Token: server.Token, Wait: atOnce})
	if err != nil {
		t.Fatal(err)
	}
	return client.Setup("octo/widgets")
}

func TestARepositoryIsSetUp(t *testing.T) {
	server, repository, _ := newForge(t)
	s, ctx := setupOf(t, server), t.Context()
	for _, value := range []string{"sk-old", "sk-new"} { // twice, as all of it may be done
		for _, err := range []error{s.PutSecret(ctx, "KEY", value), s.LetWorkflowsOpenPullRequests(ctx), s.CreateLabel(ctx, "agent-ci", "5319e7", "D")} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if value, _ := repository.Secret("KEY"); value != "sk-new" || !repository.WorkflowsMayOpenPullRequests() {
		t.Errorf("the secret is %q, pull requests %v", value, repository.WorkflowsMayOpenPullRequests())
	}
	if diff := cmp.Diff([]string{"agent-ci"}, repository.Labels()); diff != "" {
		t.Error(diff)
	}
	if err := s.PutSecret(ctx, "a/../b", "x"); forge.KindOf(err) != forge.Invalid {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
	server.On("GET", "/repos/octo/widgets/actions/secrets/public-key", forgetest.Reply{Body: `{"key_id": "1", "key": "c2hvcnQ="}`}, 1)
	if err := s.PutSecret(ctx, "KEY", "x"); err == nil {
		t.Error("a short key is taken")
	}
	server.On("PUT", "/repos/octo/widgets/actions/secrets/KEY", forgetest.Reply{Status: 403, Body: `{"message": "Resource not accessible by personal access token"}`}, 1)
	if err := s.PutSecret(ctx, "KEY", "x"); forge.KindOf(err) != forge.Forbidden {
		t.Errorf("a token that may not: %v", err)
	}
}

func TestFilesAndBranchesOfASetup(t *testing.T) {
	server, repository, _ := newForge(t)
	s, tree := setupOf(t, server), revision(t, repository, "main^{tree}")
	for path, want := range map[string]bool{"greet.txt": true, "greet": false, "greet.txt/deeper": false, ".github/a.yml": false} {
		if has, err := s.Has(t.Context(), tree, path); err != nil || has != want {
			t.Errorf("%s: %v, %v", path, has, err)
		}
	}
	for range 2 {
		if err := s.DeleteBranch(t.Context(), "feature/topic"); err != nil {
			t.Fatal(err)
		}
	}
	if got := git(t, repository, "", "branch", "--list", "feature/*"); got != "" {
		t.Errorf("left: %s", got)
	}
}
