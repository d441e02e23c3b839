package editformat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/editformat"
)

// BenchmarkApply reads an answer with 1000 blocks, evenly spread, and applies it to
// a file of 200000 lines.
func BenchmarkApply(b *testing.B) {
	const lines, blocks = 200_000, 1000
	line := func(i int) string { return fmt.Sprintf("\tline %d of the file that is changed\n", i) }
	var file, diff, loose, udiff strings.Builder
	for i := range lines {
		file.WriteString(line(i))
	}
	diff.WriteString("f.go\n")
	loose.WriteString("f.go\n")
	udiff.WriteString("```diff\n--- a/f.go\n+++ b/f.go\n")
	for k := range blocks {
		at := k*(lines/blocks) + lines/blocks/2
		search, replace := line(at-1)+line(at)+line(at+1), line(at-1)+"\tchanged\n"+line(at+1)
		diff.WriteString(block(search, replace))
		loose.WriteString(block(strings.ReplaceAll(search, "\t", ""), strings.ReplaceAll(replace, "\t", "")))
		udiff.WriteString("@@ ... @@\n " + line(at-1) + "-" + line(at) + "+\tchanged\n " + line(at+1))
	}
	udiff.WriteString("```\n")
	text := file.String()
	for _, bench := range []struct {
		name   string
		format editformat.Format
		answer string
	}{
		{"1000_blocks/200000", editformat.Diff, diff.String()},
		{"1000_blocks_with_another_indentation/200000", editformat.Diff, loose.String()},
		{"1000_hunks/200000", editformat.Udiff, udiff.String()},
		{"whole_file/200000", editformat.Whole, fenced("f.go", "", strings.ReplaceAll(text, "99", "100"))},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(text) + len(bench.answer)))
			b.ReportAllocs()
			for b.Loop() {
				edits := editformat.Parse(bench.format, bench.answer).Edits
				now, _, err := editformat.Apply(bench.format, edits, map[string]*string{"f.go": &text})
				if err != nil || now["f.go"] == nil {
					b.Fatal(err)
				}
			}
		})
	}
}
