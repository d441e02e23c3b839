package document

import "strings"

// Signs has the sign before a result in plain text.
var Signs = map[Tone]string{Good: "✓ ", Doubtful: "! ", Bad: "✗ "}

// boxes has the sign before a step in plain text.
var boxes = map[Box]string{Open: "○ ", InProgress: "◐ ", Done: "✓ "}

// PlainText returns blocks as plain text, one row a line, for terminals and timelines. It does not
// escape anything.
func PlainText(blocks ...Block) string {
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
			for _, line := range block.Rows {
				b.WriteString(plainRow(line) + "\n")
			}
		case Folds:
			for _, fold := range block.Folds {
				b.WriteString(fold.Title.String() + "\n" + PlainText(fold.Blocks...))
			}
		case Code:
			b.WriteString(strings.TrimSuffix(string(block), "\n") + "\n")
		}
	}
	return b.String()
}

// plainRow returns a row of a table: the first cell, a colon, and the other cells that are not empty.
func plainRow(line Row) string {
	var cells []string
	for _, cell := range line[1:] {
		if text := cell.String(); text != "" {
			cells = append(cells, text)
		}
	}
	return line[0].String() + ": " + strings.Join(cells, "; ")
}
