package resolve_test

import (
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// open opens a pull request of octo-org/widgets.
func open(t *testing.T, client *github.Client, head string) {
	t.Helper()
	must.Get(client.Repository("octo-org/widgets").CreatePullRequest(t.Context(), forge.NewPullRequest{Title: "T", Head: head, Base: "main"}))(t)
}
