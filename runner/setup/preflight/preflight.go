// Package preflight checks a run's requirements before any cost: prices for limits, and this
// machine's keys, secrets and programs. It knows no networks, forges, sandboxes or runs: it only
// looks, and asks or starts nothing.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/access"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Kind is a finding's consequence for a run.
type Kind string

// The kinds of findings.
const (
	Mistake Kind = "mistake" // of the job: no machine can run it
	Missing Kind = "missing" // on this machine: a run here would end with it
	Note    Kind = "note"    // a run here may do without, or bring it itself
)

// Finding is a mistake or a missing requirement.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Reason  string `json:"reason"`        // of the outcome
	Key     string `json:"key,omitempty"` // of a program: where the job names it
	Message string `json:"message"`       // a sentence that says what to do
}

// Findings are in the order in which a run needs the things they are about.
type Findings []Finding

// Options describes the run.
type Options struct {
	Job      *job.Job
	Environ  settings.Environment
	Scripted bool   // the answers come from a file: no key and no price is needed
	Publish  string // mode that was asked for; empty for what the environment allows
	Path     string // where programs of hooks and servers are looked for
	// Changeable reports whether the agent could change a file; nil if the folder is unknown. The
	// run itself explains such a refused program.
	Changeable func(path string) bool
	// InBase reports whether the base commit has a path; nil if the commit is unknown.
	InBase func(path string) (bool, error)
}

// Check returns the mistakes in the job and the missing requirements on this machine. The error means that
// the check itself failed.
func Check(ctx context.Context, o Options) (Findings, error) {
	var all Findings
	if !o.Scripted {
		for _, err := range provider.ModelProblems(o.Job, o.Environ) {
			all.add(ctx, Mistake, err)
		}
		if provider.DefaultLimitUnpriced(o.Job, o.Environ) {
			all = append(all, Finding{Note, "no_price", "", "The price of " + o.Job.Model.Name + " is unknown, so the default of limits.cost_usd has no effect; set model.price, or set limits.cost_usd to 0."})
		}
		for _, err := range access.Problems(o.Job, o.Environ) {
			all.add(ctx, Missing, err)
		}
	}
	_, err := settings.ReadCredentials(ctx, o.Environ, o.Job)
	all.add(ctx, Missing, err)
	for _, err := range settings.ServerSecretProblems(o.Environ, o.Job) {
		all.add(ctx, Missing, err)
	}
	if o.Publish != publish.Nowhere && !o.Job.Publish.IsFeedback() {
		_, err := publish.ReadKey(ctx, o.Environ, o.Job.PullRequest.Commit)
		all.add(ctx, Missing, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	programs, err := o.checkPrograms()
	all = append(all, programs...)
	if o.Publish == "" && o.Environ.Token() == "" && o.Job.Task.Issue != "" && !o.Job.Publish.IsFeedback() {
		all.add(ctx, Missing, publish.NoTokenForIssue())
	}
	return all, err
}

// add adds err as a finding. A nil err adds nothing.
func (fs *Findings) add(ctx context.Context, kind Kind, err error) {
	if err == nil {
		return
	}
	stop := outcome.ForError(ctx, err)
	*fs = append(*fs, Finding{Kind: kind, Reason: stop.Reason, Message: stop.Message})
}

// Stop returns the outcome of a run with these findings, or nil if it can start. The message lists all
// findings that would end the run: all but notes.
func (fs Findings) Stop() error {
	reason, messages := "", []string{}
	for _, f := range fs {
		if f.Kind != Note {
			reason, messages = cmp.Or(reason, f.Reason), append(messages, f.Message)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	words := strings.Join(messages, " ")
	if len(messages) > 1 {
		words = fmt.Sprintf("%d things keep the run from starting. %s", len(messages), words)
	}
	return outcome.Stopf(outcome.InvalidInput, reason, "%s", words).Because(errors.New(words))
}
