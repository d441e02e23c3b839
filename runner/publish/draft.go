package publish

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/hooks"
)

// askPublishHooks asks hooks of what is about to be published. Nothing was pushed by then.
func askPublishHooks(ctx context.Context, to Destination, p *Proposal, out *Publication) error {
	if p.Hooks == nil {
		return nil
	}
	m := to.publisher()
	told, err := m.describe(p, m.BodyOptions(p), out)
	if err != nil {
		return err
	}
	var diff strings.Builder
	if err := m.Workspace.Checkout().WritePatch(ctx, p.Change, &diff); err != nil {
		return fmt.Errorf("write the diff of the change: %w", err)
	}
	d := hooks.Draft{
		Base: p.Base.Branch, BaseSHA: p.Base.SHA, Branch: p.Task.Branch, To: to.mode(), As: "pull_request", Title: told.title, Body: told.Body, Labels: append([]string{}, p.Job.PullRequest.Labels...),
		Draft: p.isDraft(), Diff: diff.String(),
	}
	for _, file := range p.Change.Files {
		d.Files = append(d.Files, file.Path)
	}
	return p.Hooks.Publishing(ctx, d)
}
