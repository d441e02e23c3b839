package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

const (
	bar       = 40     // characters of the progress bar
	mostRows  = 100    // targets shown of a class
	mostUnits = 58_000 // GitHub limits an issue's text to 65,536 UTF-16 units; the rest is room for people's edits
)

// Markdown writes the status as the text of a tracking issue.
func Markdown(w io.Writer, s campaign.Status) error {
	done, words := settled(s)
	full := done * bar / max(len(s.Targets), 1)
	head := fmt.Sprintf("## Campaign %s\n\n`%s%s` %s\n", markdown.Text(s.Campaign), strings.Repeat("█", full), strings.Repeat("░", bar-full), words)
	counts := document.Table{Columns: []document.Column{{Name: "State"}, {Name: "Targets", Number: true}}}
	for _, c := range classes(s) {
		counts.Lines = append(counts.Lines, document.Line{document.Words(looks[c].words), document.Words(thousands(s.Counts[c]))})
	}
	about := document.Section{Blocks: []document.Block{counts}}
	for _, line := range append([]string{waiting(s)}, costs(s)...) {
		if line != "" {
			about.Blocks = append(about.Blocks, document.Paragraph{Text: document.Sentence(line)})
		}
	}
	_, err := io.WriteString(w, body.Draw(head, []document.Section{about, {Blocks: []document.Block{folds(s)}}}, mostUnits))
	return err
}

// folds returns the targets in a foldable list for each class. Classes that need a person come first. Waiting
// targets are left out.
func folds(s campaign.Status) document.Folds {
	all := document.Folds{Limit: document.Limit{Noun: "state", MaxUnits: mostUnits}}
	for _, class := range slices.Backward(classes(s)) {
		if class == campaign.Waiting {
			continue
		}
		list := document.List{Limit: document.Limit{Noun: "target", MaxRows: mostRows, MaxUnits: mostUnits / len(campaign.Classes())}}
		for _, r := range s.Targets {
			if r.Class == class {
				list.Items = append(list.Items, document.Item{Text: document.Join(": ", document.Join(" ", document.Mono(name(r.Target)), pull(s.Server, r)), document.Words(note(r)))})
			}
		}
		all.Folds = append(all.Folds, document.Fold{
			Title: document.Words(looks[class].words + ": " + thousands(s.Counts[class])), MaxUnits: list.MaxUnits + 500, Blocks: []document.Block{list},
		})
	}
	return all
}
