package resolve

import (
	"context"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// mostBytes is the size limit of a file of targets, in bytes.
const mostBytes = 32 << 20

// gatherCandidates returns the targets in the campaign's list, file and queries, before they are looked up.
func (o Options) gatherCandidates(ctx context.Context) (all []*candidate, err error) {
	found, err := o.readTargetsFile()
	if err != nil {
		return nil, err
	}
	for _, l := range append(o.Campaign.Listed(o.File), found...) {
		repository, commit, issue, err := l.Locate()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.At, err)
		}
		all = append(all, &candidate{
			Target: campaign.Target{Repository: repository, Base: l.Base, Issue: issue, Path: cleanPath(l.Path), Values: l.Values},
			commit: commit, server: form.IssueServer(l.Issue),
		})
	}
	for _, q := range o.Campaign.Targets.Queries {
		found, err := o.searchCandidates(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// readTargetsFile reads the file of targets, which must be in the folder of the campaign file.
func (o Options) readTargetsFile() ([]spec.ListedTarget, error) {
	name := o.Campaign.Targets.File
	if name == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("read the targets: %w", err)
	}
	defer root.Close()
	raw, err := boundedfile.ReadIn(root, name, mostBytes)
	if err != nil {
		return nil, fmt.Errorf("read the targets (targets.file): %w", err)
	}
	return spec.ParseTargets(name, raw)
}

// searchCandidates searches the forge for targets.
func (o Options) searchCandidates(ctx context.Context, q spec.Query) ([]*candidate, error) {
	s := forge.Search{Organisation: q.Organisation, Topic: q.Topic, Code: q.Code, Issues: q.Issues, Labels: q.Labels, Heads: intake.BranchPrefix + o.Campaign.Name + "-"}
	hits, err := o.Forge.Search(ctx, s, o.Campaign.Targets.Most)
	if err != nil {
		return nil, err
	}
	var all []*candidate
	for _, h := range hits {
		all = append(all, &candidate{Target: campaign.Target{Repository: h.Repository, Issue: h.Issue}, byQuery: true, finding: h.Finding, open: h.Open})
	}
	return all, nil
}
