package intake_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// moving is a repository whose pull request gets a new commit whenever its diff is read,
// so many times.
type moving struct {
	forge.Repository
	left, at int
}

func (m *moving) PullRequest(context.Context, int) (*forge.PullRequest, error) {
	return &forge.PullRequest{Number: 7, HeadSHA: fmt.Sprint(m.at)}, nil
}

func (m *moving) PullRequestFiles(context.Context, int) ([]forge.PullFile, error) {
	read := []forge.PullFile{{Path: fmt.Sprint(m.at)}}
	if m.left > 0 {
		m.left, m.at = m.left-1, m.at+1
	}
	return read, nil
}

func TestReadsDiffAtOneCommit(t *testing.T) {
	for moves := range 3 {
		pull, files, err := intake.ReadDiff(t.Context(), &moving{left: moves}, 7)
		if err != nil || len(files) != 1 || files[0].Path != pull.HeadSHA {
			t.Errorf("%d moves: %+v, %+v, %v", moves, pull, files, err)
		}
	}
	if pull, files, err := intake.ReadDiff(t.Context(), &moving{left: 3}, 7); outcometest.End(err) != "conflict/pull_request_moved" || pull != nil || files != nil {
		t.Errorf("a pull request that never rests: %+v, %+v, %v", pull, files, err)
	}
}
