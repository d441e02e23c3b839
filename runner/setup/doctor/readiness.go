package doctor

import (
	"cmp"
	"context"

	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/setup/look"
	"github.com/agent-ci/agent-ci/runner/setup/preflight"
)

// ofModel maps reasons of findings about the model. Others concern the configuration.
var ofModel = map[string]string{"no_api_key": "model", "no_identity": "model", "base_url": "model", "no_price": "model"}

// examineReadiness reports a default run's missing requirements, with the run's own first check.
func (d *Diagnosis) examineReadiness(ctx context.Context, p *sandboxcommand.Prepared) error {
	found, err := look.Lacks(ctx, p.Record, p.Workspace, preflight.Options{Job: p.Job, Environ: p.Environ, Publish: publish.ToForge})
	for _, f := range found {
		report := d.fault
		if f.Kind == preflight.Note {
			report = d.note
		}
		report(cmp.Or(ofModel[f.Reason], "configuration"), f.Message, "")
	}
	return err
}
