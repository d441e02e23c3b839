package doctor

import (
	"cmp"
	"context"

	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/setup/look"
	"github.com/agent-ci/agent-ci/runner/setup/preflight"
)

// topicOfReason maps outcome reasons to topics of problems. Other reasons are about the configuration.
var topicOfReason = map[string]string{"no_api_key": "model", "no_identity": "model", "base_url": "model", "no_price": "model"}

// examineReadiness adds requirements that a run would miss here. Runs begin with the same check.
func (d *Diagnosis) examineReadiness(ctx context.Context, p *sandboxcommand.Prepared) error {
	found, err := look.CheckRequirements(ctx, p.Record, p.Workspace, preflight.Options{Job: p.Job, Environ: p.Environ, Publish: publish.ToForge})
	for _, f := range found {
		report := d.addError
		if f.Kind == preflight.Note {
			report = d.addWarning
		}
		report(cmp.Or(topicOfReason[f.Reason], "configuration"), f.Message, "")
	}
	return err
}
