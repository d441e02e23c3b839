package transcript

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// GroupThousands returns n with commas between groups of three digits.
func GroupThousands[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// CountNoun returns n with its noun, in the plural unless n is 1.
func CountNoun(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return GroupThousands(n) + " " + noun
}

// FormatSeconds returns a number of seconds as a short text, such as "1.5 s" or "2 min 3 s".
func FormatSeconds(seconds float64) string {
	switch {
	case seconds < 0.05:
		return "0 s"
	case seconds < 9.95:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	case seconds < 59.5:
		return strconv.FormatFloat(seconds, 'f', 0, 64) + " s"
	}
	wholeSeconds := int64(math.Round(min(seconds, math.MaxInt32)))
	return fmt.Sprintf("%s min %d s", GroupThousands(wholeSeconds/60), wholeSeconds%60)
}

// FormatClock returns a duration as 2:03 or 1:02:03.
func FormatClock(d time.Duration) string {
	wholeSeconds := int(max(d, 0) / time.Second)
	hours, minutes, seconds := wholeSeconds/3600, wholeSeconds/60%60, wholeSeconds%60
	if hours > 0 {
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// chunkHeader matches lines of an output that only the model needs: the chunk's name and the number
// of tokens.
var chunkHeader = lazyregexp.New(`^Chunk ID: [0-9a-f]{1,16}\n((?:Wall time: .*\n)?(?:Process .*\n)?)Original token count: \d+\n`)

// ReadableOutput returns the output of a call for people, without chunkHeader's lines.
func ReadableOutput(output string) string { return chunkHeader().ReplaceAllString(output, "$1") }
