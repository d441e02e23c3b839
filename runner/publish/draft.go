package publish

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
)

// Draft is what is about to be published, whole.
type Draft struct {
	Base        gitops.Base
	Branch      string
	Title, Body string
	Labels      []string
	Draft       bool
	Files       []string
	Diff        string // unified
}

// askOfDraft asks who has a say in what is published. Nothing was pushed by then.
func askOfDraft(ctx context.Context, to Destination, p *Proposal, out *Publication) error {
	if p.Ask == nil {
		return nil
	}
	m := to.means()
	told, err := m.describe(p, m.BodyOptions(p), out)
	if err != nil {
		return err
	}
	var diff strings.Builder
	if err := m.Workspace.Checkout().WritePatch(ctx, p.Change, &diff); err != nil {
		return fmt.Errorf("write the diff of the change: %w", err)
	}
	d := Draft{
		Base: p.Base, Branch: p.Task.Branch, Title: told.title, Body: told.Body, Labels: append([]string{}, p.Job.PullRequest.Labels...),
		Draft: p.draft(), Diff: diff.String(),
	}
	for _, file := range p.Change.Files {
		d.Files = append(d.Files, file.Path)
	}
	return p.Ask(ctx, d)
}
