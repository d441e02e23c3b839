package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shownCampaign is a campaign with its ledger, which the tests of the package show made.
const shownCampaign = "../../runner/campaign/show/testdata/"

// campaignSays calls agent-ci campaign for that campaign.
func campaignSays(t *testing.T, subcommand string, flags ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"campaign", subcommand, shownCampaign + "bump.yml", "--ledger", shownCampaign + "ledger"}, flags...)...)
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	_ = cmd.Run() // the status tells
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

func TestCampaignIsToldInEachForm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		subcommand, format string
		want               []string
	}{
		{"status", "", []string{"octo-org/service-09#12", "checks red", "26 runs; 12.90 of 60.00 dollars spent, 10.00 claimed", "Waits: 4 runs are in progress."}},
		{"status", "table", []string{"40 targets: 12 waiting"}},
		{"status", "markdown", []string{"## Campaign bump\n", "24 of 40 targets settled", "[#106](https://github.com/octo-org/service-06/pull/106)"}},
		{"status", "html", []string{"<!doctype html>", "Content-Security-Policy", "24 of 40 targets settled", `href="https://github.com/octo-org/service-06/pull/106"`}},
		{"status", "json", []string{`"estimate_usd": 7.0363`, `"class": "opened"`}},
	} {
		var flags []string
		if test.format != "" {
			flags = []string{"--format", test.format}
		}
		out, problems, status := campaignSays(t, test.subcommand, flags...)
		if status != 0 || problems != "" {
			t.Errorf("%s %s: %d, %s", test.subcommand, test.format, status, problems)
		}
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s %s does not say %q:\n%s", test.subcommand, test.format, want, out)
			}
		}
	}
}

func TestCampaignIsCalledWrongly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		subcommand string
		flags      []string
		want       string
	}{
		{"status", []string{"--format", "pdf"}, "--format of agent-ci campaign status is one of table, json, markdown, html, not pdf."},
		{"status", []string{"--format", "csv"}, "is one of table, json, markdown, html, not csv."},
		{"status", []string{"--reason", "x"}, "--reason is not for agent-ci campaign status."},
		{"statsu", nil, `there is no subcommand "statsu"; did you mean status?`},
		{"fly", nil, `there is no subcommand "fly"; they are `},
	} {
		out, problems, status := campaignSays(t, test.subcommand, test.flags...)
		if status != 2 || out != "" || !strings.Contains(problems, test.want) || !strings.Contains(problems, "Run agent-ci campaign --help") {
			t.Errorf("%s %q: %d, %s%s", test.subcommand, test.flags, status, out, problems)
		}
	}
}

// The help of a subcommand has its flags and no others, as completion does.
func TestSubcommandsOfCampaignExplainThemselves(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(binary, "campaign", "status", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for want, has := range map[string]bool{"show the progress of the campaign": true, "agent-ci campaign status CAMPAIGN.yml": true, "--format": true, "--ledger": true, "--publish": false, "--reason": false, "Subcommands:": false} {
		if strings.Contains(string(out), want) != has {
			t.Errorf("%q: %v\n%s", want, !has, out)
		}
	}
	whole, err := exec.Command(binary, "help", "campaign").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Subcommands:", "approve ", "status ", "--wait", "Example:"} {
		if !strings.Contains(string(whole), want) {
			t.Errorf("it does not say %q:\n%s", want, whole)
		}
	}
}

func TestCampaignFilesAreValidated(t *testing.T) {
	t.Parallel()
	good, err := filepath.Glob(examples + "campaigns/*.yml")
	if err != nil || len(good) != 5 {
		t.Fatalf("%q, %v", good, err)
	}
	for _, file := range append(good, examples+"campaigns/local/campaign.yml") {
		out, err := exec.Command(binary, "validate", file).CombinedOutput()
		if alone := strings.HasSuffix(file, "issue-job.yml"); (err != nil) != alone || alone != !strings.Contains(string(out), ": ok\n") {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "campaign.yml")
	if err := os.WriteFile(bad, []byte("version: 1\nname: bump\ntargets: {list: [{repository: octo-org}]}\njob: {version: 1, task: {prompt: x}, limits: {turn: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	schema, err := exec.Command(binary, "schema", "campaign").Output()
	if err != nil || !strings.Contains(string(schema), `"title": "agent-ci campaign"`) {
		t.Errorf("%v: %s", err, schema)
	}
}
