package silenced

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/check/lines"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// pattern describes a sign in changed lines.
type pattern struct {
	ID    string
	Files []string // path patterns for policy.MatchesPattern
	Line  string   // a regular expression for an added line, joined with the line that it continues
	// Number is a regular expression with two groups: a name and a number. It is a sign if the
	// number becomes smaller, or larger with SignIfRaised.
	Number       string
	SignIfRaised bool
	// SignIfRemoved makes it a sign, too, if the number of a name is removed and the file adds none.
	SignIfRemoved bool
	// InComments also searches lines that are comments.
	InComments  bool
	OncePerFile bool // the first such line of a file says it all
	Weak        bool // see transcript.SilencedSign
	Why         string
}

const (
	maxFound = 50  // signs in the list
	maxText  = 200 // bytes of a line that are shown
)

// minRewrittenLines is how many lines a snapshot must lose, and gain if it gains any, to count as
// rewritten.
const minRewrittenLines = 20

// snapshots are patterns of files that tests compare output with.
var snapshots = strings.Fields("*.snap **/__snapshots__/** **/snapshots/** *.ambr *.golden **/golden/** *.approved.* *.snapshot")

// Find returns the signs that a change silences checks, such as a skipped test. found has up to maxFound signs, weak
// ones last; unlisted counts the others that are not weak. If diff omits lines of the change, one more sign says so.
// The error is an invalid path pattern of this package.
func Find(diff *lines.Diff) (found []transcript.SilencedSign, unlisted int, err error) {
	f := finder{removed: removedLines(diff)}
	for _, file := range diff.Files {
		if err := f.searchFile(file); err != nil {
			return nil, 0, err
		}
	}
	if diff.OmittedLines > 0 {
		f.add(transcript.SilencedSign{Pattern: "too-large", Reason: fmt.Sprintf("%s of the change were not looked at", transcript.CountNoun(diff.OmittedLines, "line"))})
	}
	fitting := min(len(f.weak), maxFound-len(f.found))
	return append(f.found, f.weak[:fitting]...), f.unlisted, nil
}

// finder collects the signs in a change.
type finder struct {
	removed  map[string]int // removed lines without an equal added line so far
	found    []transcript.SilencedSign
	weak     []transcript.SilencedSign
	unlisted int
}

// add adds a sign to its list, or only counts it if the list is full.
func (f *finder) add(s transcript.SilencedSign) {
	s.Text = clip.Bytes(strings.ToValidUTF8(s.Text, "\uFFFD"), maxText)
	switch {
	case s.Weak:
		f.weak = append(f.weak, s)
	case len(f.found) == maxFound:
		f.unlisted++
	default:
		f.found = append(f.found, s)
	}
}

// searchFile searches a file of the change for all patterns.
func (f *finder) searchFile(file lines.File) error {
	if err := f.searchSnapshot(file); err != nil {
		return err
	}
	for _, p := range patterns() {
		fits, err := policy.MatchesPattern(p.Files, file.Path)
		if err != nil {
			return fmt.Errorf("pattern %s: %w", p.ID, err)
		}
		switch {
		case !fits:
		case p.Number != "":
			f.compareNumbers(p, file)
		default:
			f.searchLines(p, file)
		}
	}
	return nil
}

// searchLines searches added lines for a pattern. It skips lines that only moved.
func (f *finder) searchLines(p compiledPattern, file lines.File) {
	for _, line := range file.Added {
		text := decodeEscapes(file.Path, line.WithContinued())
		isSkippedComment := !p.InComments && isComment(file.Path, text)
		if isSkippedComment || !p.expression().MatchString(text) || f.takeMoved(line) {
			continue
		}
		f.add(p.signAt(file, line))
		if p.OncePerFile {
			return
		}
	}
}

// compareNumbers adds a sign for each number that became worse, such as a lowered coverage threshold. It compares
// the removed and added numbers of one name in their order. With SignIfRemoved, it also adds a sign for a name
// that the file loses.
func (f *finder) compareNumbers(p compiledPattern, file lines.File) {
	removed, added := p.numbersIn(file.Path, file.Removed), p.numbersIn(file.Path, file.Added)
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		before, after := removed[name], added[name]
		for i := range min(len(before), len(after)) {
			if p.silences(before[i].value, after[i].value) {
				f.add(p.signAt(file, after[i].Line))
			}
		}
		if p.SignIfRemoved && len(after) == 0 {
			sign := p.signAt(file, before[0].Line)
			sign.Removed = true
			f.add(sign)
		}
	}
}

// signAt returns the sign that a line of a file gives.
func (p pattern) signAt(file lines.File, line lines.Line) transcript.SilencedSign {
	return transcript.SilencedSign{Pattern: p.ID, File: file.Path, Line: line.Number, Text: strings.TrimSpace(line.Text), Weak: p.Weak, Reason: p.Why}
}

// silences reports whether the change of a number silences a check.
func (p compiledPattern) silences(before, after float64) bool {
	if p.SignIfRaised {
		return after > before
	}
	return after < before
}

// searchSnapshot adds a sign if the file is a snapshot that is rewritten as a whole.
func (f *finder) searchSnapshot(file lines.File) error {
	isSnapshot, err := policy.MatchesPattern(snapshots, file.Path)
	if err != nil || !isSnapshot {
		return err
	}
	losesAll := len(file.Removed) >= minRewrittenLines
	gainsAllOrNone := len(file.Added) >= minRewrittenLines || len(file.Added) == 0
	if !losesAll || !gainsAllOrNone {
		return nil
	}
	f.add(transcript.SilencedSign{
		Pattern: "snapshot-rewritten", File: file.Path, Line: 1, Reason: fmt.Sprintf("the expected output is rewritten as a whole: −%d +%d lines", len(file.Removed), len(file.Added)),
	})
	return nil
}

// removedLines counts the removed lines by lineKey. They show which added lines only moved.
func removedLines(diff *lines.Diff) map[string]int {
	removed := map[string]int{}
	for _, file := range diff.Files {
		for _, line := range file.Removed {
			removed[lineKey(line)]++
		}
	}
	return removed
}

// takeMoved reports whether the change also removes an equal line, so that the line only moved. Each removed line
// counts for one added line.
func (f *finder) takeMoved(line lines.Line) bool {
	key := lineKey(line)
	if f.removed[key] == 0 {
		return false
	}
	f.removed[key]--
	return true
}

// lineKey returns a line and the line before it as one text.
func lineKey(line lines.Line) string { return line.Before + "\n" + strings.TrimSpace(line.Text) }

// compiledPattern is a pattern with its regular expression, compiled at the first file with a fitting name.
type compiledPattern struct {
	pattern
	expression func() *regexp.Regexp // Number, or else Line
}

var patterns = sync.OnceValue(func() (all []compiledPattern) {
	for _, p := range patternTable {
		all = append(all, compiledPattern{p, lazyregexp.New(cmp.Or(p.Number, p.Line))})
	}
	return all
})

type numberedLine struct {
	lines.Line
	value float64
}

// numbersIn returns the numbers that the pattern finds in lines of the file called name, by the numbers' names. It
// skips comments.
func (p compiledPattern) numbersIn(name string, all []lines.Line) map[string][]numberedLine {
	found := map[string][]numberedLine{}
	for _, line := range all {
		if isComment(name, line.Text) {
			continue
		}
		const maxNumbers = 20 // of a line
		for _, m := range p.expression().FindAllStringSubmatch(line.Text, maxNumbers) {
			if value, err := strconv.ParseFloat(strings.ReplaceAll(m[2], "_", ""), 64); err == nil {
				found[m[1]] = append(found[m[1]], numberedLine{line, value})
			}
		}
	}
	return found
}

// escapedASCII matches an ASCII character written as a JSON escape.
var escapedASCII = lazyregexp.New(`\\u00([2-7][0-9a-fA-F])`)

// decodeEscapes returns a line of a JSON file with the escapes of ASCII characters decoded. It leaves lines of
// other files unchanged.
func decodeEscapes(name, line string) string {
	if path.Ext(name) != ".json" || !strings.Contains(line, `\u00`) {
		return line
	}
	return escapedASCII().ReplaceAllStringFunc(line, func(s string) string {
		code, _ := strconv.ParseUint(s[4:], 16, 8)
		return string(rune(code))
	})
}

// commentSigns returns the beginnings of comment lines in files with an ending in lower case. In an unknown
// language, "#" begins comments.
func commentSigns(ending string) []string {
	switch ending {
	case ".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".java", ".kt", ".kts", ".gradle", ".groovy", ".scala", ".rs", ".swift", ".cs", ".c", ".cc", ".cpp", ".h", ".dart":
		return []string{"//", "/*", "*"}
	case ".php":
		return []string{"//", "/*", "*", "# "}
	case ".xml":
		return []string{"<!--"}
	case ".json":
		return nil
	case ".ini", ".cfg":
		return []string{"#", ";"}
	case ".bat":
		return []string{"::", "rem "}
	case ".lua":
		return []string{"--"}
	}
	return []string{"#"}
}

// isComment reports whether a line of the file called name is a comment.
func isComment(name, line string) bool {
	line = strings.TrimSpace(line)
	return slices.ContainsFunc(commentSigns(strings.ToLower(path.Ext(name))), func(sign string) bool { return strings.HasPrefix(line, sign) })
}
