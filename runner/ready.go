package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/preflight"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// ReadyOptions say of which run ListReadiness tells.
type ReadyOptions struct {
	Dir      string   // the checkout, or any folder
	JobFile  string   // empty for the repository's defaults
	Defaults string   // file that is taken in place of the base commit's defaults; empty for those
	Set      []string // KEY=VALUE
	Environ  []string
	Reserved []string
	Version  string
}

// ListReadiness returns what is wrong or missing for a run here, as far as it can be known without
// asking anybody. Without a checkout nothing is said of files of the repository.
func ListReadiness(ctx context.Context, o ReadyOptions) (found preflight.Findings, err error) {
	in := newInvocation("", settings.Given{JobFile: o.JobFile, Defaults: o.Defaults, Set: o.Set}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Quiet: true})
	err = in.inScratch(func() error {
		ws, err := in.openBase(ctx, o.Dir)
		switch {
		case err == nil:
			defer ws.Close()
		case outcome.Of(ctx, err).Reason != "no_checkout":
			return err
		}
		set, err := in.source.LoadTemplate(ctx, commitOf(ws))
		if err == nil {
			found, err = in.readiness(ctx, ws, set)
		}
		return err
	})
	return found, err
}

// checkReady ends a run before it asks anybody, with all that is wrong or missing.
func (in *invocation) checkReady(ctx context.Context, ws *workspace.Workspace, set *settings.Settings) error {
	found, err := in.readiness(ctx, ws, set)
	if err != nil {
		return err
	}
	return found.Stop()
}

// readiness returns what is wrong or missing for a run by these settings. ws is the checkout of its
// base commit; nil where that is not known yet.
func (in *invocation) readiness(ctx context.Context, ws *workspace.Workspace, set *settings.Settings) (preflight.Findings, error) {
	boxes := confine.Sandboxes{Record: in.rec, Environ: in.env, Job: &set.Job, Root: in.rec.Path()}
	o := preflight.Options{Job: &set.Job, Environ: in.env, Scripted: in.script != "", Signs: in.publish != publishNone}
	if ws != nil {
		boxes.Root, o.InBase = ws.Root(), ws.Checkout().HasBase
	}
	folders := boxes.Changeable()
	o.Path = confine.PathOutside(in.env.Get("PATH"), folders)
	o.Changeable = func(path string) bool { return confine.LeadsInto(path, folders) }
	found, err := preflight.Check(ctx, o)
	if in.publish == "" && in.env.Token() == "" && set.Job.Task.Issue != "" && !set.Job.Publish.Feedback() {
		found.Add(ctx, preflight.Missing, noTokenForIssue())
	}
	return found, err
}
