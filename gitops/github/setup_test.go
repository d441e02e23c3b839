package github_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func setupOf(t *testing.T, server *forgetest.Forge) github.Setup {
	t.Helper()
	return newClient(t, server.APIURL, server.Token).Setup("octo/widgets")
}

func TestSetsUpRepository(t *testing.T) {
	server, repository, _ := newForge(t)
	s, ctx := setupOf(t, server), t.Context()
	for _, value := range []string{"sk-old", "sk-new"} { // twice, as all of it may be done
		for _, err := range []error{s.PutSecret(ctx, "KEY", value), s.LetWorkflowsOpenPullRequests(ctx), s.CreateLabel(ctx, "agent-ci", "5319e7", "D")} {
			must.Do(t, err)
		}
	}
	if value, _ := repository.Secret("KEY"); value != "sk-new" || !repository.WorkflowsMayOpenPullRequests() {
		t.Errorf("the secret is %q, pull requests %v", value, repository.WorkflowsMayOpenPullRequests())
	}
	must.Same(t, []string{"agent-ci"}, repository.Labels())
	must.Same(t, forge.Invalid, forge.KindOf(s.PutSecret(ctx, "a/../b", "x")), "a name that leads elsewhere")
	server.On("GET", "/repos/octo/widgets/actions/secrets/public-key", forgetest.Reply{Body: `{"key_id": "1", "key": "c2hvcnQ="}`}, 1)
	must.Fail(t, "", s.PutSecret(ctx, "KEY", "x"), "a short key is taken")
	server.On("PUT", "/repos/octo/widgets/actions/secrets/KEY", forgetest.Reply{Status: 403, Body: `{"message": "Resource not accessible by personal access token"}`}, 1)
	must.Same(t, forge.Forbidden, forge.KindOf(s.PutSecret(ctx, "KEY", "x")), "a token that may not")
}

func TestWritesSetupFilesAndBranches(t *testing.T) {
	server, repository, _ := newForge(t)
	s, tree := setupOf(t, server), revision(t, repository, "main^{tree}")
	for folder, want := range map[string]int{".github": 0, "greet": 0, "greet.txt/deeper": -1} {
		if entries, err := s.Entries(t.Context(), tree, folder); (err != nil) != (want < 0) || err == nil && len(entries) != want || err != nil && !strings.Contains(err.Error(), "greet.txt is no folder but has mode 100644") {
			t.Errorf("%s: %v, %v", folder, entries, err)
		}
	}
	must.Same(t, "hello", string(must.Get(s.Blob(t.Context(), revision(t, repository, "main:greet.txt")))(t)))
	for _, want := range []bool{false, true} {
		must.Same(t, want, must.Get(s.HasSecret(t.Context(), "KEY"))(t), "a secret is there")
		must.Do(t, s.PutSecret(t.Context(), "KEY", "x"))
	}
	for range 2 {
		must.Do(t, s.DeleteBranch(t.Context(), "feature/topic"))
	}
	must.Same(t, "", git(t, repository, "", "branch", "--list", "feature/*"), "left")
}
