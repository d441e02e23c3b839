package tree

import "github.com/agent-ci/agent-ci/gitops/v4a"

// Edit is the planned change of one file with its texts, for a decision before the commit.
type Edit struct {
	Change
	Text     string // the new text of the file; "" for a deleted file
	Old, New string // the removed and the added lines, without the unchanged lines between them
}

// Edits returns the changes of the plan with their texts, sorted by path.
func (p *Plan) Edits() []Edit {
	edits := make([]Edit, len(p.changed))
	for i := range p.changed {
		c := &p.changed[i]
		edit := Edit{Change: c.withCounts()}
		edit.Old, edit.New = c.diff().Texts()
		if c.Op != v4a.Delete {
			edit.Text = c.file.content
		}
		edits[i] = edit
	}
	return edits
}
