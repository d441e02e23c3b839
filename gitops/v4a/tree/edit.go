package tree

import "github.com/agent-ci/agent-ci/gitops/v4a"

// Edit is the planned change of one file, for a decision before the commit.
type Edit struct {
	Change
	Text     string // that the file has then; of a deleted one none
	Old, New string // the lines that differ, without what stands between
}

// Edits are the changes of the plan with their texts, in the order of their paths.
func (p *Plan) Edits() []Edit {
	edits := make([]Edit, len(p.changed))
	for i, c := range p.changed {
		edit := Edit{Change: c.Change}
		edit.Old, edit.New = c.diff.Texts()
		if c.Op != v4a.Delete {
			edit.Text = c.file.content.Text()
		}
		edits[i] = edit
	}
	return edits
}
