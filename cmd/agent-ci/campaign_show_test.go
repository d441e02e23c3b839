package main_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// shownCampaign is a campaign with its ledger, which the tests of the package show made.
const shownCampaign = "../../runner/campaign/show/testdata/"

func TestCampaignShowsInEachFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"table": "40 targets: 12 waiting", "markdown": "## Campaign bump\n", "html": "<!doctype html>", "json": `"class": "opened"`} {
		out, err := exec.Command(binary, "campaign", "status", shownCampaign+"bump.yml", "--ledger", shownCampaign+"ledger", "--format", format).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, without %q:\n%s", format, err, want, out)
		}
	}
}

func TestValidatesCampaignsInJSON(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "campaign.yml")
	must.Write(t, bad, "version: 1\nname: bump\ntargets: {list: [{repository: octo-org}]}\njob: {version: 1, task: {prompt: x}, limits: {turn: 1}}\n")
	out, err := exec.Command(binary, "validate", "--json", bad).Output()
	var told []struct {
		Valid    bool
		Problems []struct {
			Line, Column int
			Key          string
		}
	}
	if json.Unmarshal(out, &told) != nil || err == nil || len(told) != 1 || told[0].Valid || len(told[0].Problems) != 2 || told[0].Problems[0].Line != 3 || told[0].Problems[1].Key != "limits.turn" {
		t.Errorf("%v: %s", err, out)
	}
	schema := must.Get(exec.Command(binary, "schema", "campaign").Output())(t)
	must.Contain(t, string(schema), `"title": "agent-ci campaign"`)
}
