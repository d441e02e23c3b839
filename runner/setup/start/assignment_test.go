package start

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// named is a repository that is known by its name alone.
type named struct {
	forge.Repository
	name string
}

func (n named) Name() string { return n.name }

// The base of an event is a branch of the event's repository.
func TestIgnoresBaseOfEventInOtherRepository(t *testing.T) {
	event := intake.Event{
		Event:        &actions.Event{PullRequest: &actions.PullRequest{Base: actions.PullBranch{Ref: "next"}}},
		Surroundings: intake.Surroundings{InActions: true, Repository: "octo/widgets"},
	}
	pull := &forge.PullRequest{Base: "main"}
	for name, c := range map[string]struct {
		of   string
		task intake.Task
		want string
	}{
		"here":           {of: "Octo/widgets", want: "next"},
		"elsewhere":      {of: "octo/gadgets"},
		"a pull request": {"octo/gadgets", intake.Task{Pull: pull}, "main"},
	} {
		must.Same(t, c.want, configuringBranch(event, Assignment{Project: publish.Project{Repo: named{name: c.of}}, Task: c.task}), name)
	}
}

// The files of a task are read from the run's own checkout, even if it was cloned because another one did
// not fit.
func TestReadsTaskFromCheckoutOfItsRun(t *testing.T) {
	here, cloned := gittest.New(t), gittest.New(t)
	for text, repo := range map[string]gittest.Repo{"here": here, "cloned": cloned} {
		repo.Write("mockup.png", text)
		repo.Commit("Begin")
	}
	rec := recordtest.New(t, "run-1")
	s := &Start{Record: rec, Source: &settings.Source{Warn: rec.Warn, Inputs: settings.Inputs{Env: settings.Environment{"GITHUB_ACTIONS=true"}}}}
	open := func(repo gittest.Repo) *workspace.Workspace {
		ws, err := workspace.Open(t.Context(), rec, workspace.Options{Dir: repo.Dir, Path: os.Getenv("PATH")})
		if err == nil {
			err = ws.StartOn(t.Context(), "")
		}
		must.Do(t, err)
		t.Cleanup(func() { _ = ws.Close() })
		return ws
	}
	first, second := open(here), open(cloned)
	set := &settings.Settings{File: settings.File{Path: filepath.Join(first.Root(), "job.yml")}}
	a := Assignment{Settings: set, Source: s.intakeSource(intake.Event{}, &Request{}, set, first)}
	b := s.withSettings(a, &settings.Settings{File: settings.File{Path: filepath.Join(second.Root(), "job.yml")}}, second)
	for want, a := range map[string]Assignment{"here": a, "cloned": b} {
		must.Same(t, want, string(must.Get(a.Source.ReadBesideJob(t.Context(), "mockup.png", 100))(t)))
	}
}
