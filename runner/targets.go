package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/worker"
)

// ModelsOf returns the models that a run of a job may ask.
func ModelsOf(j *job.Job, environ []string) (models []campaign.Model) {
	for _, m := range worker.Models(j, settings.Environment(environ)) {
		models = append(models, campaign.Model{Name: m.Name, Price: m.Profile.Price, Window: m.Profile.ContextWindow, Output: m.Profile.OutputLimit})
	}
	return models
}

// Applies asks the applies_if of a job file in a fresh tree of its repository, as a run does before
// anything is paid, and leaves nothing behind. A job that does not apply is an outcome.Stop with the
// outcome skipped.
func Applies(ctx context.Context, jobFile string, s Surroundings) (err error) {
	in := newInvocation(record.NewID(time.Now()), settings.Given{JobFile: jobFile}, s)
	in.publish = publishNone
	folder, err := os.MkdirTemp("", "agent-ci-applies-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() {
		if left := sandbox.RemoveScratch(folder); err == nil {
			err = left
		}
	}()
	in.dir = filepath.Join(folder, "nowhere") // no checkout: the job's repository is cloned
	if err := os.Mkdir(in.dir, 0o700); err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	so := &reached{}
	defer in.rec.Close()
	defer so.close()
	if err := in.rec.Make(filepath.Join(folder, "run"), in.watch.Show); err != nil {
		return err
	}
	err = guarded(ctx, func(ctx context.Context) error { return in.applies(ctx, so) })
	if err != nil {
		return outcome.Of(ctx, err)
	}
	return nil
}

// applies goes as far as applies_if: no model is known, and nothing of the task is read.
func (in *invocation) applies(ctx context.Context, so *reached) (err error) {
	if so.settings, err = in.configure(ctx, nil); err != nil {
		return err
	}
	if so.project, err = in.findProject(in.naming(so.job(), in.around(), nil)); err != nil {
		return err
	}
	if so.workspace, so.settings, err = in.clone(ctx, so.assignment, intake.Event{}, nil); err != nil {
		return err
	}
	if err := so.workspace.Prepare(ctx, so.preparation()); err != nil {
		return err
	}
	by, err := in.readRules(ctx, so)
	if err != nil {
		return err
	}
	if err := in.confine(ctx, so, by); err != nil {
		return err
	}
	if err := in.begin(so); err != nil {
		return err
	}
	return so.checks().Applies(ctx)
}
