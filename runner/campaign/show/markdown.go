package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

const (
	barChars      = 40     // characters of the progress bar
	maxClassRows  = 100    // targets shown of a class
	maxIssueUnits = 58_000 // GitHub limits an issue's text to 65,536 UTF-16 units; the rest is room for people's edits
)

// Markdown writes the status as the text of a tracking issue.
func Markdown(w io.Writer, s campaign.Status) error {
	done, words := settledTargets(s)
	filled := done * barChars / max(len(s.Targets), 1)
	head := fmt.Sprintf("## Campaign %s\n\n`%s%s` %s\n", markdown.Text(s.Campaign), strings.Repeat("█", filled), strings.Repeat("░", barChars-filled), words)
	counts := document.Table{Columns: []document.Column{{Name: "State"}, {Name: "Targets", Number: true}}}
	for _, c := range usedClasses(s) {
		counts.Rows = append(counts.Rows, document.Row{document.Words(classStyles[c].words), document.Words(transcript.GroupThousands(s.Counts[c]))})
	}
	overview := document.Section{Blocks: []document.Block{counts}}
	for _, line := range append([]string{describeWait(s)}, describeCosts(s)...) {
		if line != "" {
			overview.Blocks = append(overview.Blocks, document.Paragraph{Text: document.Sentence(line)})
		}
	}
	_, err := io.WriteString(w, body.Draw(head, []document.Section{overview, {Blocks: []document.Block{classFolds(s)}}}, maxIssueUnits))
	return err
}

// classFolds returns the targets in a foldable list for each class. Classes that need a person come first. Waiting
// targets are left out.
func classFolds(s campaign.Status) document.Folds {
	all := document.Folds{Limit: document.Limit{Noun: "state", MaxUnits: maxIssueUnits}}
	for _, class := range slices.Backward(usedClasses(s)) {
		if class == campaign.Waiting {
			continue
		}
		list := document.List{Limit: document.Limit{Noun: "target", MaxRows: maxClassRows, MaxUnits: maxIssueUnits / len(campaign.Classes())}}
		for _, r := range s.Targets {
			if r.Class == class {
				list.Items = append(list.Items, document.Item{Text: document.Join(": ", document.Join(" ", document.Mono(targetName(r.Target)), pullLinkText(s.Server, r)), document.Words(targetNote(r)))})
			}
		}
		all.Folds = append(all.Folds, document.Fold{
			Title: document.Words(classStyles[class].words + ": " + transcript.GroupThousands(s.Counts[class])), MaxUnits: list.MaxUnits + 500, Blocks: []document.Block{list},
		})
	}
	return all
}
