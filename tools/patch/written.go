package patch

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/tools"
)

// Written is the edit format of a model without tools.
type Written struct {
	Format editformat.Format
	// Known returns the files that the model has seen, for edits that name no path.
	Known func() []string
}

// applyWritten makes the edits in a model's answer, all or none. Its text is in the format of Options.Written.
func (p *Patcher) applyWritten(ctx context.Context, text string) (tools.Result, error) {
	w := p.options.Written
	answer := editformat.Parse(w.Format, text)
	switch {
	case len(answer.Problems) > 0:
		return tools.Refuse(nothingChanged + strings.Join(answer.Problems, "\n")), nil
	case len(answer.Edits) == 0:
		return tools.Refuse(nothingChanged + "there is no edit in the text."), nil
	}
	var notes []string
	paths := editformat.Paths(answer.Edits, w.Known()...)
	result, err := p.Rewrite(ctx, paths, func(texts tree.Texts) (tree.Texts, error) {
		newTexts, applyNotes, err := editformat.Apply(w.Format, answer.Edits, texts)
		notes = applyNotes
		return newTexts, err
	})
	if err != nil || result.Failed {
		return result, err
	}
	result.Output = describeEdits(result.Detail) + strings.Join(append(notes, result.Output), "\n")
	return result, nil
}

// nothingChanged begins the output for edits that were refused.
const nothingChanged = "Nothing was changed. "

// describeEdits returns the output that lists the edited files. It finds them in a result's detail.
func describeEdits(detail map[string]any) string {
	var s strings.Builder
	all, _ := detail["files"].([]tree.Change)
	if len(all) == 0 {
		return "The edits change nothing: the files are as they were.\n"
	}
	s.WriteString("Done. The edits changed these files:\n")
	for _, f := range all {
		fmt.Fprintf(&s, "%s %s\n", f.Op.Letter(), f.Path)
	}
	return s.String()
}
