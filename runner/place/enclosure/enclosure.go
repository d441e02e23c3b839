// Package enclosure sets up a run's sandboxes: the secrets of their commands, their work tree, and
// the git filters that run confined.
package enclosure

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Open finds out how commands can be confined and which tree they work in, before anything runs and
// before the model is asked. boxes have the record, the job and its rules; Open adds ws. mask keeps
// values out of the CI step's log.
func Open(ctx context.Context, boxes *confine.Sandboxes, ws *workspace.Workspace, mask func([]secrets.Value)) error {
	checkout := ws.Checkout()
	boxes.Root, boxes.Checkout, boxes.Earlier.Hidden = ws.Root(), ws, ws.HiddenFiles()
	if err := readCredentials(ctx, boxes, ws, mask); err != nil {
		return err
	}
	if err := boxes.SettleConfinement(ctx); err != nil {
		return err
	}
	checkout.SetFilterOpener(boxes.OpenFilter) // from here on, filters run in sandboxes, and only permitted ones
	checkout.AllowFilters(boxes.Job.Git.FilterReads())
	if err := checkout.CheckFilters(ctx); err != nil {
		return err
	}
	if err := ws.UseTree(ctx, boxes.WorkTree()); err != nil {
		return err
	}
	if !ws.CommandsRan() {
		if err := boxes.CheckPathsToCheckout(ctx); err != nil {
			return err
		}
	}
	if err := boxes.CheckOthersConfinable(ctx); err != nil {
		return err
	}
	if unused := boxes.UnusableSecrets(); len(unused) > 0 {
		boxes.Record.Warn("secret_unused", "No command can use the secret %s (policy.secrets): check its key commands, and that those commands have a list of hosts as network.", strings.Join(unused, ", "))
	}
	return nil
}

// readCredentials reads the values of the job's secrets. From then on the record redacts them.
func readCredentials(ctx context.Context, boxes *confine.Sandboxes, ws *workspace.Workspace, mask func([]secrets.Value)) error {
	env, j := boxes.Environ, boxes.Job
	read, err := settings.ReadCredentials(ctx, env, j)
	if err != nil {
		return err
	}
	if len(read) > 0 {
		values := settings.CredentialSecrets(read)
		boxes.Credentials = read
		boxes.Record.SetSecrets(append(settings.Secrets(env, j), values...))
		boxes.Record.ExemptBase(ctx, ws.Checkout().BaseContainsText)
		mask(values)
	}
	if err := settings.CheckServerSecrets(env, j); err != nil {
		return err
	}
	mask(slices.DeleteFunc(settings.ServerSecrets(env, j), func(v secrets.Value) bool { return len(v.Secret) < secrets.MinLength }))
	return nil
}
