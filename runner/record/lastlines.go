package record

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Limits of the part of a failed command's log that is shown.
const (
	maxShownLines     = 30
	maxShownLineBytes = 400
	maxShownBytes     = 6 << 10
	lastLinesRead     = 64 << 10 // how many bytes at the end of the log are read
)

// LastLines returns the last lines of a log for people: up to maxShownLines lines and maxShownBytes
// bytes. It shortens long lines in the middle and removes control characters. It reads only the end
// of the log.
func (d *Directory) LastLines(name string) (string, error) {
	tail, err := d.Tail(name, lastLinesRead)
	if err != nil {
		return "", err
	}
	return lastLinesOf(strings.TrimPrefix(tail, "[…]\n")), nil
}

// lastLinesOf returns the last lines of a text, within the limits of LastLines.
func lastLinesOf(text string) string {
	all := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	all = all[max(0, len(all)-maxShownLines):]
	bytes, first := 0, len(all)
	for i := len(all) - 1; i >= 0; i-- {
		all[i] = shortenLine(all[i])
		bytes += len(all[i]) + 1
		if bytes > maxShownBytes {
			break
		}
		first = i
	}
	return strings.Trim(strings.Join(all[first:], "\n"), "\n")
}

// shortenLine returns a line without control characters, shortened in the middle.
func shortenLine(line string) string {
	line = strings.TrimRight(markdown.Screen(line), " \t")
	if len(line) <= maxShownLineBytes {
		return line
	}
	const half = maxShownLineBytes / 2
	return clip.Bytes(line, half) + clip.End(line, half)
}
