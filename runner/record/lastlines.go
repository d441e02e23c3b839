package record

import (
	"strings"

	"github.com/agent-ci/agent-ci/internal/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// How much of the end of a log people are shown where a command failed.
const (
	shownLines     = 30
	shownLineBytes = 400
	shownBytes     = 6 << 10
	lastLinesRead  = 64 << 10 // of the log, to find them
)

// LastLines is what the last lines of a log say to a person: at most shownLines lines
// of shownBytes in all, long ones cut in their middle, without control characters and what steers a
// terminal. It reads the end of the log alone.
func (d *Directory) LastLines(name string) (string, error) {
	tail, err := d.Tail(name, lastLinesRead)
	if err != nil {
		return "", err
	}
	return lastLines(strings.TrimPrefix(tail, "[…]\n")), nil
}

func lastLines(text string) string {
	all := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	all = all[max(0, len(all)-shownLines):]
	bytes, first := 0, len(all)
	for i := len(all) - 1; i >= 0; i-- {
		all[i] = shownLine(all[i])
		if bytes += len(all[i]) + 1; bytes > shownBytes {
			break
		}
		first = i
	}
	return strings.Trim(strings.Join(all[first:], "\n"), "\n")
}

func shownLine(line string) string {
	line = strings.TrimRight(markdown.Screen(line), " \t")
	if len(line) <= shownLineBytes {
		return line
	}
	const half = shownLineBytes / 2
	return clip.Bytes(line, half) + clip.End(line, half)
}
