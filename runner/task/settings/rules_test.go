package settings_test

import (
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/settings"
)

const repositoryRules = ".github/agent-ci.rules"

func forbids(program string) string {
	return `prefix_rule(pattern = ["` + program + `"], decision = "forbidden")` + "\n"
}

func TestReportsMistakesInRules(t *testing.T) {
	base := committed(t, files{repositoryRules: `prefix_rule(pattern = ["x"], decision = "perhaps")` + "\nnonsense(\n"})
	_, err := settings.ReadRules(t.Context(), base, nil)
	wantStop(t, err, "rules", "agent-ci sandbox --explain -- true lists them all")
}

func TestRulesNeedAbsolutePathWithoutCheckout(t *testing.T) {
	folder := t.TempDir()
	files{"op.rules": forbids("op")}.put(t, folder)
	if _, err := settings.ReadRules(t.Context(), settings.Commit{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := settings.ReadRules(t.Context(), settings.Commit{}, []string{filepath.Join(folder, "op.rules")}); err != nil {
		t.Error(err)
	}
	_, err := settings.ReadRules(t.Context(), settings.Commit{}, []string{filepath.Join(folder, "op.rules"), "ci/more.rules"})
	wantStop(t, err, "rules", "ci/more.rules (policy.rules) are in a repository, and there is none here")
}
