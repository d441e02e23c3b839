package merge

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Labels names the sides in conflict markers.
type Labels struct{ Ours, Base, Theirs string }

// markerSign ends every conflict marker that agent-ci writes. It distinguishes markers from similar
// lines.
const markerSign = " (agent-ci)"

// Markers returns the four marker lines: above the side Ours, above Base, above Theirs, and the
// last one.
func (l Labels) Markers() [4]string {
	return [4]string{"<<<<<<< " + l.Ours + markerSign, "||||||| " + l.Base + markerSign, "======= " + l.Theirs + markerSign, ">>>>>>> " + l.Theirs + markerSign}
}

// IsMarker reports whether a line, without its ending, is a marker with any labels.
func IsMarker(line string) bool {
	if !strings.HasSuffix(line, markerSign) {
		return false
	}
	marks := Labels{}.Markers()
	return slices.ContainsFunc(marks[:], func(mark string) bool { return strings.HasPrefix(line, strings.TrimSuffix(mark, markerSign)) })
}

// relabel replaces git's conflict markers by those of l, and reports whether there were any. git's
// markers are longer than any similar line of a file.
func (l Labels) relabel(text string) (relabeled string, found bool) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, mark := range l.Markers() {
			label, is := strings.CutPrefix(line, strings.Repeat(mark[:1], repository.MarkSize))
			wantsLabel := mark[0] != '=' // git writes a blank and a label after all markers but the divider
			if !is || strings.HasPrefix(label, " ") != wantsLabel {
				continue
			}
			end := "\n"
			if strings.HasSuffix(line, "\r\n") {
				end = "\r\n"
			}
			line, found = mark+end, true
		}
		b.WriteString(line)
	}
	return b.String(), found
}
