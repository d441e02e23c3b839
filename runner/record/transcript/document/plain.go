package document

import "strings"

// signs stand before results and steps in plain text.
var (
	signs = map[Tone]string{Good: "✓ ", Doubtful: "! ", Bad: "✗ "}
	boxes = map[Box]string{Open: "○ ", InProgress: "◐ ", Done: "✓ "}
)

// Sign is the sign for a tone in plain text.
func Sign(tone Tone) string { return signs[tone] }

// Lines returns blocks as plain text, a row a line, for terminals and timelines. It is raw like its
// texts.
func Lines(blocks ...Block) string {
	var b strings.Builder
	for _, block := range blocks {
		switch block := block.(type) {
		case Paragraph:
			b.WriteString(block.Text.String() + "\n")
		case List:
			for _, item := range block.Items {
				b.WriteString(boxes[item.Box] + item.Text.String() + "\n")
			}
		case Table:
			for _, line := range block.Lines {
				b.WriteString(row(line) + "\n")
			}
		case Folds:
			for _, fold := range block.Folds {
				b.WriteString(fold.Title.String() + "\n" + Lines(fold.Blocks...))
			}
		case Code:
			b.WriteString(strings.TrimSuffix(string(block), "\n") + "\n")
		}
	}
	return b.String()
}

// row formats a table's line: its subject, a colon, and the non-empty cells.
func row(line Line) string {
	var cells []string
	for _, cell := range line[1:] {
		if text := cell.String(); text != "" {
			cells = append(cells, text)
		}
	}
	return line[0].String() + ": " + strings.Join(cells, "; ")
}
