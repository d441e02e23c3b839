package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// checksOf are the checks of a job in a repository with the file tracked, which
// ignores *.log. Nothing confines them: what a sandbox does is tested with it.
func checksOf(t *testing.T, j job.Job) Checks { return checksOn(t, j, nil) }

// checksOn are those of a job whose base has some files more.
func checksOn(t *testing.T, j job.Job, files map[string]string) Checks {
	t.Helper()
	repo := gittest.New(t)
	repo.WriteAll(files)
	repo.Write("tracked", "base\n")
	repo.Write(".gitignore", "*.log\n")
	repo.Commit("base")
	rec := recordtest.New(t, "r")
	w := must.Get(workspace.Open(t.Context(), rec, workspace.Options{Dir: repo.Dir, Path: os.Getenv("PATH")}))(t)
	t.Cleanup(func() { _ = w.Close() })
	must.Do(t, w.StartOn(t.Context(), ""))
	j.Policy.Sandbox, j.Policy.Network, j.Repository.Path = string(grants.DangerFullAccess), job.Network{Mode: "full"}, "."
	for i := range j.Setup {
		j.Setup[i].Timeout = job.Duration(time.Hour)
	}
	for i := range j.Verify {
		if j.Verify[i].Timeout == 0 {
			j.Verify[i].Timeout = job.Duration(time.Hour)
		}
	}
	boxes := &confine.Sandboxes{
		Control: egress.Control{Record: rec, Environ: os.Environ(), Job: &j}, Root: w.Root(), Checkout: w,
	}
	must.Do(t, boxes.FindWorkTree(t.Context(), nil))
	must.Do(t, w.UseTree(t.Context(), boxes.WorkTree()))
	commit := func(gitops.Base, time.Time) (gitops.CommitOptions, error) {
		return gitops.CommitOptions{Message: "change"}, nil
	}
	return Checks{Record: rec, Sandboxes: boxes, Workspace: w, Job: &j, Branch: "change", Commit: commit}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

func TestSetup(t *testing.T) {
	for name, c := range map[string]struct {
		steps []job.SetupStep
		want  string
		named string // in the message, and the events
		ran   int
	}{
		"none":                       {nil, "", "", 0},
		"that leaves files":          {[]job.SetupStep{{Run: "touch new x.log"}, {Name: "see", Run: "test -e new"}}, "", "setup 1 see", 2},
		"whose second step is red":   {[]job.SetupStep{{Name: "a", Run: "true"}, {Run: "false"}, {Run: "true"}}, "setup_failed", "a setup 2", 2},
		"that changes tracked files": {[]job.SetupStep{{Name: "a", Run: "echo more >> tracked"}}, "setup_changed_files", "a", 1},
	} {
		t.Run(name, func(t *testing.T) {
			checks := checksOf(t, job.Job{Setup: c.steps})
			must.Same(t, c.want, outcometest.Reason(checks.SetUp(t.Context())))
			var ran []string
			for _, step := range must.Get(checks.Record.View())(t).Setup {
				ran = append(ran, step.Name)
			}
			if got := strings.Join(ran, " "); got != c.named || len(ran) != c.ran {
				t.Errorf("ran %q", got)
			}
			must.Same(t, c.ran > 0, checks.Workspace.CommandsRan(), "what setup leaves can be taken back if it ran, and else there is nothing")
		})
	}
}

// A check of the base sees the files that are untracked, and a tree of its own.
func TestRunsBaseline(t *testing.T) {
	checks := checksOf(t, job.Job{Verify: []job.VerifyCheck{{Name: "a", Run: "test -e mine && touch made && echo >> tracked"}, {Name: "b", Run: "test -e made || ! test -e mine"}}})
	write(t, checks.Workspace.SandboxPath(), "mine", "")
	table, err := checks.Baseline(t.Context())
	if err != nil || !table.Passed || table.Rows[0].Before != "green" || table.Rows[1].Before != "red" {
		t.Errorf("%+v, %v", table, err)
	}
	if change, err := checks.Workspace.Changes(t.Context()); err != nil || !change.Empty() {
		t.Errorf("what was there before counts as the agent's: %v, %v", change, err)
	}
}

// worked are checks with a baseline, and a change that appends to tracked.
func worked(t *testing.T, all ...job.VerifyCheck) (Checks, transcript.Verify, *gitops.ChangeSet) {
	t.Helper()
	checks := checksOf(t, job.Job{Verify: all})
	table := must.Get(checks.Baseline(t.Context()))(t)
	write(t, checks.Workspace.SandboxPath(), "tracked", "base\nchange\n")
	write(t, checks.Workspace.SandboxPath(), "ignored.log", "")
	change := must.Get(checks.Workspace.Changes(t.Context()))(t)
	return checks, table, change
}

func TestComparesChangeWithBase(t *testing.T) {
	checks, baseline, change := worked(t,
		job.VerifyCheck{Name: "mended", Run: "grep change tracked", Must: "pass"},
		job.VerifyCheck{Name: "broken", Run: "! grep change tracked", Must: "pass"},
		job.VerifyCheck{Name: "always red", Run: "test -e ignored.log", Must: "no_worse"},
		job.VerifyCheck{Name: "apart", Run: "test ! -e left; touch left", Must: "pass"})
	table, err := checks.VerifyChange(t.Context(), 1, change, baseline.Rows)
	if err != nil || table.Passed || table.Attempt != 1 {
		t.Fatalf("%+v, %v", table, err)
	}
	var rows []string
	for _, row := range table.Rows {
		rows = append(rows, fmt.Sprintf("%s: %s, %s, %t", row.Name, row.Before, row.After, row.Passed))
	}
	want := []string{"mended: red, green, true", "broken: green, red, false", "always red: red, red, true", "apart: green, green, true"}
	must.Same(t, want, rows)
	must.Same(t, "", baseline.Rows[0].After, "the baseline was changed")
	must.Same(t, "base\nchange\n", string(must.Get(os.ReadFile(filepath.Join(checks.Workspace.SandboxPath(), "tracked")))(t)), "the tree of the agent is not at its place")
	words, err := checks.DescribeRed(table, "And more.")
	if err != nil || !strings.Contains(words, "on a fresh copy") || !strings.Contains(words, " And more.\n") ||
		strings.Count(words, "\n## ") != 1 || !strings.Contains(words, "## broken: red (before your change: green)\n") {
		t.Errorf("%v: %s", err, words)
	}
	checks.Record.Remove(table.Rows[1].Log)
	if _, err := checks.DescribeRed(table, ""); err == nil || !strings.HasPrefix(err.Error(), "read log of broken: ") {
		t.Errorf("without its log: %v", err)
	}
}

func TestPasses(t *testing.T) {
	for _, c := range []struct {
		before, after, must, flaky string
		want                       bool
	}{
		{"green", "green", "pass", "", true},
		{"red", "timeout", "pass", "", false},
		{"red", "red", "no_worse", "", true},
		{"timeout", "red", "no_worse", "", true},
		{"green", "red", "no_worse", "", false},
		{"green", "green", "no_worse", "", true},
		{"green", "timeout", "no_worse", "", false},
		{"green", "flaky", "pass", "", false},
		{"green", "flaky", "pass", "accept", true},
		{"green", "flaky", "no_worse", "", false},
		{"flaky", "red", "no_worse", "", true},
		{"flaky", "red", "no_worse", "accept", false}, // it counts as green before
		{"flaky", "flaky", "no_worse", "accept", true},
	} {
		row := transcript.VerifyRow{Before: c.before, After: c.after, Must: c.must, Flaky: c.flaky}
		must.Same(t, c.want, Passes(row), row, "passes")
	}
}

func TestReportsRedNewBase(t *testing.T) {
	checks, baseline, change := worked(t, job.VerifyCheck{Name: "a", Run: "test -e gone", Must: "no_worse"})
	baseline.Rows[0].Before, baseline.Attempt = "green", 2 // as the old base had it
	table, err := checks.VerifyOnNewBase(t.Context(), baseline, change)
	if err != nil || !table.Passed || table.Attempt != 5 || table.Rows[0].Before != "red" || baseline.Rows[0].Before != "green" {
		t.Errorf("%+v, %v", table, err)
	}
	checks.Job.Verify[0].Run = "test -e tracked"
	if table, err = checks.VerifyOnNewBase(t.Context(), baseline, change); err != nil || !table.Passed || table.Attempt != 3 || table.Rows[0].Before != "green" {
		t.Errorf("green at once: %+v, %v", table, err)
	}
	change.Tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4905"
	if table, err = checks.VerifyOnNewBase(t.Context(), baseline, change); err == nil || table.Attempt != 2 {
		t.Errorf("a tree that is not there: %+v, %v", table, err)
	}
}
