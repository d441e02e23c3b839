package record

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// The part of a failed command's log to show.
const (
	maxShownLines     = 30
	maxShownLineBytes = 400
	maxShownBytes     = 6 << 10
	lastLinesRead     = 64 << 10 // of the log, to find them
)

// LastLines returns the last lines of a log for people: at most maxShownLines lines and maxShownBytes
// bytes, with long ones shortened in the middle, and without control characters. It only reads the
// end of the log.
func (d *Directory) LastLines(name string) (string, error) {
	tail, err := d.Tail(name, lastLinesRead)
	if err != nil {
		return "", err
	}
	return lastLines(strings.TrimPrefix(tail, "[…]\n")), nil
}

func lastLines(text string) string {
	all := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	all = all[max(0, len(all)-maxShownLines):]
	bytes, first := 0, len(all)
	for i := len(all) - 1; i >= 0; i-- {
		all[i] = shownLine(all[i])
		if bytes += len(all[i]) + 1; bytes > maxShownBytes {
			break
		}
		first = i
	}
	return strings.Trim(strings.Join(all[first:], "\n"), "\n")
}

func shownLine(line string) string {
	line = strings.TrimRight(markdown.Screen(line), " \t")
	if len(line) <= maxShownLineBytes {
		return line
	}
	const half = maxShownLineBytes / 2
	return clip.Bytes(line, half) + clip.End(line, half)
}
