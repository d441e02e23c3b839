// Package look owns what can be told of a run in a checkout before it starts: its hooks, its skills,
// its lessons, and what it would lack on this machine. Nothing is run, and nobody is asked.
package look

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/setup/preflight"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Options describes the run to inspect.
type Options struct {
	settings.Inputs
	Dir      string // the checkout, or a folder in it
	Operator string // path of the operator's file; empty for none
}

// Hook is a hook that the run would have.
type Hook struct {
	transcript.ActiveHook
	// Problem says why the hook could not start, as far as this is known without starting it; empty for no
	// problem.
	Problem string `json:"problem,omitempty"`
}

// Found describes what a run would use, and what it would miss.
type Found struct {
	Findings       preflight.Findings
	Hooks          []Hook
	HooksUnknown   error // why these are not known; nil if they are
	Skills         skills.Found
	LostLessons    []proposals.LostLesson // whose evidence is gone
	LessonProblems config.Problems        // of the file of lessons
}

// Inspect inspects a checkout without running anything. Without a checkout it only checks the requirements
// that need none.
func Inspect(ctx context.Context, o Options) (found Found, err error) {
	folder, err := os.MkdirTemp("", "agent-ci-look-")
	if err != nil {
		return found, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer sandbox.RemoveScratch(folder)
	rec := record.New("", settings.Secrets(o.Env, nil))
	if err := rec.Make(folder, nil); err != nil {
		return found, err
	}
	defer rec.Close()
	ws, err := workspace.Open(ctx, rec, workspace.Options{Dir: o.Dir, Path: o.Env.Get("PATH"), Forge: o.Env.ForgeServer(), OpenFilter: confine.EarlyFilters(rec, o.Env)})
	if err == nil {
		defer ws.Close()
		err = ws.StartOn(ctx, "")
	}
	base := settings.Commit{}
	if err = workspace.CheckoutFailure(err); err == nil {
		base = ws.Commit()
	} else if ws = nil; outcome.ForError(ctx, err).Reason != "no_checkout" {
		return found, err
	}
	source := &settings.Source{Inputs: o.Inputs, Warn: rec.Warn}
	set, err := source.LoadTemplate(ctx, base)
	if err != nil {
		return found, err
	}
	if found.Findings, err = CheckRequirements(ctx, rec, ws, preflight.Options{Job: &set.Job, Environ: o.Env}); err != nil || ws == nil {
		return found, err
	}
	found.Hooks, found.HooksUnknown = o.findHooks(ctx, rec, ws, &set.Job)
	if found.Skills, err = assembly.FindSkills(base, &set.Job); err != nil {
		return found, err
	}
	if found.LostLessons, err = proposals.LessonsWithoutEvidence(ws, &set.Job); errors.As(err, &found.LessonProblems) {
		return found, nil
	}
	return found, err
}

// findHooks returns the hooks of a job, each with the problem that would keep it from starting.
func (o Options) findHooks(ctx context.Context, rec *record.Record, ws *workspace.Workspace, j *job.Job) (list []Hook, err error) {
	all, err := hooks.Find(ctx, o.Operator, j, ws.Commit(), o.Env.Home())
	if err != nil || len(all) == 0 {
		return nil, err
	}
	tree, err := ws.BaseTree()(ctx)
	if err != nil {
		return nil, err
	}
	boxes := confine.Sandboxes{Control: egress.Control{Record: rec, Environ: o.Env, Job: j}, Root: ws.Root()}
	rooms := hooks.SandboxProvider{Environ: o.Env, WritableByCommands: boxes.WritableFolders()}
	for _, h := range all {
		hook := Hook{ActiveHook: h.ActiveHook}
		if err := h.RequireStartable(rooms, tree); err != nil {
			hook.Problem = err.Error()
		}
		list = append(list, hook)
	}
	return list, nil
}

// CheckRequirements returns what is wrong or missing for a run. ws is on the run's base commit; nil means
// that the commit is unknown.
func CheckRequirements(ctx context.Context, rec *record.Record, ws *workspace.Workspace, o preflight.Options) (preflight.Findings, error) {
	boxes := confine.Sandboxes{Control: egress.Control{Record: rec, Environ: o.Environ, Job: o.Job}, Root: rec.Path()}
	if ws != nil {
		boxes.Root = ws.Root()
		if checkout := ws.Checkout(); checkout != nil {
			o.InBase = checkout.HasBase
		}
	}
	folders := boxes.WritableFolders()
	o.Path = confine.PathWithoutFolders(o.Environ.Get("PATH"), folders)
	o.Changeable = func(path string) bool { return confine.PointsInto(path, folders) }
	return preflight.Check(ctx, o)
}
