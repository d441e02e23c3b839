package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// readEarlierRequests finds earlier requests on a continued pull request. Permission does not depend on them:
// they decide nothing.
func (f Forge) readEarlierRequests(ctx context.Context, p *Proposal) error {
	if p.Task.Request == "" || p.Task.Mode == intake.Join || p.earlierRequests != nil {
		return nil
	}
	open, err := f.openPull(ctx, p)
	if err != nil || open == nil {
		return err
	}
	p.earlierRequests = slices.DeleteFunc(body.Requests(open.Body), func(r body.Request) bool { return r.Run == p.RunID })
	return nil
}

// maxEarlierText bounds the text of an earlier request in a commit message, in UTF-16 code units,
// and of how many.
const (
	maxEarlierText  = 1_000
	earlierInCommit = 10
)

// earlierParagraphs describes earlier requests in a commit message.
func (p *Proposal) earlierParagraphs() []string {
	var all []string
	for _, r := range p.earlierRequests[:min(len(p.earlierRequests), earlierInCommit)] {
		text := fmt.Sprintf("Earlier, asked for as %q:", markdown.Cut(markdown.Headline(r.Asked), 100))
		if r.Summary != "" {
			text += "\n" + markdown.Cut(r.Summary, maxEarlierText)
		}
		all = append(all, markdown.Commit(text))
	}
	return all
}
