package tree_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// repeatedHunks changes hunks lines of a file, evenly spread, with context.
func repeatedHunks(lines, hunks int) (text, patch string) {
	var file, b strings.Builder
	for i := range lines {
		fmt.Fprintf(&file, "\tline %d of the file that is changed\n", i)
	}
	for h := range hunks {
		at := h*(lines/hunks) + lines/hunks/2
		line := func(i int) string { return fmt.Sprintf("\tline %d of the file that is changed\n", i) }
		b.WriteString("@@\n " + line(at-1) + "-" + line(at) + "+\tchanged\n " + line(at+1))
	}
	return file.String(), b.String()
}

// equalLines is a file of one line over and over.
func equalLines(lines int) string { return strings.Repeat("\treturn nil\n", lines) }

// folderWith is a folder whose file f has a text.
func folderWith(b *testing.B, text string) (string, tree.Dir) {
	dir := b.TempDir()
	folder{"f": text}.write(b, dir)
	return dir, tree.OnRoot(openRoot(b, dir))
}

func benchmark(b *testing.B, text, hunks string) {
	_, work := folderWith(b, text)
	b.SetBytes(int64(len(text) + len(hunks)))
	b.ReportAllocs()
	for b.Loop() {
		plannedOn(b, work, "*** Update File: f\n"+hunks)
	}
}

// BenchmarkPlan parses a patch and plans it against a file on disk. The last
// number of a name is the file's lines.
func BenchmarkPlan(b *testing.B) {
	for _, lines := range []int{50_000, 200_000, 800_000} {
		text, hunks := repeatedHunks(lines, 1000)
		b.Run(fmt.Sprintf("1000_hunks/%d", lines), func(b *testing.B) { benchmark(b, text, hunks) })
		b.Run(fmt.Sprintf("1000_loose_hunks/%d", lines), func(b *testing.B) {
			benchmark(b, text, strings.ReplaceAll(hunks, "changed\n", "changed  \n"))
		})
		b.Run(fmt.Sprintf("equal_lines/%d", lines), func(b *testing.B) {
			hunk := strings.Repeat(" \treturn nil\n", 50) + "-\treturn nil\n+\treturn err\n"
			var hunks strings.Builder
			for at := 1; at+51 < lines; at += 100 {
				fmt.Fprintf(&hunks, "@@ -%d,51 +%d,51 @@\n%s", at, at, hunk)
			}
			benchmark(b, equalLines(lines), hunks.String())
		})
		b.Run(fmt.Sprintf("equal_lines_one_hunk/%d", lines), func(b *testing.B) {
			benchmark(b, equalLines(lines)+"last\n", "@@\n"+strings.Repeat(" \treturn nil\n", lines/2)+"-last\n")
		})
	}
}

// BenchmarkRefuse is a hunk that is nowhere, with the search for what is most
// like it.
func BenchmarkRefuse(b *testing.B) {
	for _, lines := range []int{50_000, 200_000} {
		b.Run(fmt.Sprint(lines), func(b *testing.B) {
			_, work := folderWith(b, equalLines(lines))
			patch := parsed(b, "*** Update File: f\n@@\n"+strings.Repeat(" \treturn nil\n", 1000)+"-\treturn nill\n")
			for b.Loop() {
				if _, err := tree.NewPlan(b.Context(), work, patch); err == nil {
					b.Fatal("applied")
				}
			}
		})
	}
}

func BenchmarkCommit(b *testing.B) {
	text, hunks := repeatedHunks(200_000, 1000)
	dir, work := folderWith(b, text)
	patch := parsed(b, "*** Update File: f\n"+hunks)
	for b.Loop() {
		b.StopTimer()
		folder{"f": text}.write(b, dir)
		b.StartTimer()
		plan := must.Get(tree.NewPlan(b.Context(), work, patch))(b)
		must.Do(b, plan.Commit(b.Context()))
	}
}

func BenchmarkDiff(b *testing.B) {
	text, hunks := repeatedHunks(200_000, 1000)
	_, work := folderWith(b, text)
	plan := plannedOn(b, work, "*** Update File: f\n"+hunks)
	for b.Loop() {
		must.Do(b, plan.Diff(io.Discard))
	}
}
