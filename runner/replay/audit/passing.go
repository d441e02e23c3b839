package audit

import (
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

var volatileHeader = lazyregexp.New(`(?m)^(?:Chunk ID: .*|Wall time: .*|Wall time [0-9.]+ seconds|Original token count: .*|Process running with session ID .*)\n?`)

// removeVolatileHeader removes the parts of a command's header that differ in each run.
func removeVolatileHeader(output string) string { return volatileHeader().ReplaceAllString(output, "") }

// textMask replaces a kind of text that varies between equal runs.
type textMask struct {
	pattern     func() *regexp.Regexp
	replacement string // in the form of regexp.Expand
}

const (
	weekday = `(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?`
	month   = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`
	clock   = `\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?`
	zone    = `(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}|[+-]\d{2}:?\d{2})\b)?`
	amount  = `\d+(?:[.,]\d+)?`
	units   = `(?:ns|[uµμ]s|ms|s|sec|secs|seconds?|mins?|minutes?|hours?)`
)

// volatileMasks lists the masks in order of application, longer ones first.
var volatileMasks = []textMask{
	{lazyregexp.New(`\b` + credential.PlaceholderPrefix + `[A-Za-z0-9]{16,}`), "<id>"}, // of a secret, anew in each run
	{lazyregexp.New(`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`), "<id>"},
	{lazyregexp.New(`\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T ]+` + clock + zone + `)?`), "<time>"},
	{lazyregexp.New(weekday + `\b` + month + ` +\d{1,2}\b(?:,? +\d{4}\b)?(?: +` + clock + zone + `)?(?: +\d{4}\b)?`), "<time>"},
	{lazyregexp.New(weekday + `\b\d{1,2}[ -]` + month + `[ -]\d{4}\b(?: +` + clock + zone + `)?`), "<time>"},
	{lazyregexp.New(`((?:^|[^0-9.])(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\])):\d{1,5}\b`), "$1:<port>"},
	{lazyregexp.New(`(^\s*|[^"'\s]\s+|[=(,]["']?|[:\s]["'])((?:::|\*)?):[1-6]\d{4}\b`), "$1$2:<port>"}, // of the five digits that a system gives out
	{lazyregexp.New(`(:<port>/? )\(\d+\)`), "$1<number>"},                                              // as gunicorn says its process
	{lazyregexp.New(`(<time>\] )\[\d+\]( \[[A-Z]+\])`), "$1<number>$2"},
	{lazyregexp.New(`(?i)\b(process|pid) ?\[\d+\]`), "$1 <number>"}, // as uvicorn does
	{lazyregexp.New(`(?i)\b(port|pid|goroutine|seed)([ =:#]+)\d+\b`), "$1$2<number>"},
	{lazyregexp.New(`\b\d+\s+` + amount + ` ?` + units + `/op\b`), "<time>/op"}, // of go test -bench, with how often it ran
	{lazyregexp.New(`\b` + amount + ` [kKMG]?i?B/s\b`), "<speed>"},
	{lazyregexp.New(`(?i)\b(duration(?:_ms)?\W{1,4})` + amount + `(?: ?` + units + `)?\b`), "$1<time>"},
	{lazyregexp.New(`\b(?:` + amount + `|\d+:\d{2}[.,]\d+)(user|system|elapsed)\b`), "<time>$1"},
	{lazyregexp.New(`\b\d+(%CPU|avgtext|avgdata|maxresident|inputs|outputs|major|minor|swaps)\b`), "<number>$1"}, // as GNU time goes on
	{lazyregexp.New(`^(real|user|sys) \d+\.\d+$`), "$1 <time>"},                                                  // of time -p
	{lazyregexp.New(`\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b`), "<time>"},
	{lazyregexp.New(`(^|[\s=(])\d+:[0-5]\d[.,]\d+\b`), "$1<time>"},
	{lazyregexp.New(`\b(?:\d+(?:h|m| hours?| minutes?) ?)*` + amount + ` ?` + units + `\b`), "<time>"},
	{lazyregexp.New(`\(cached\)`), "<time>"}, // as go test says in the place of a duration
	{lazyregexp.New(`\b0x[0-9a-fA-F]{3,16}\b`), "<address>"},
	{lazyregexp.New(`((?:/private)?(?:/var)?/tmp|/var/folders/\w+/\w+/T|/dev/shm)/[^\s/'"` + "`" + `:;,()\[\]]+`), "$1/<path>"},
	{lazyregexp.New(`\b(?:tmp\.\w{6,}|tmp[a-z0-9_]{8}|go-build\d+)\b`), "<path>"}, // as mktemp, Python and Go name them
	{lazyregexp.New(`\b1[5-9]\d{8}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b`), "<time>"},     // since 1970
}

var (
	hexadecimal = lazyregexp.New(`\b[0-9a-f]{7,64}\b`)
	blanks      = lazyregexp.New(`[ \t]+`)
	rulers      = lazyregexp.New(`={3,}|-{3,}|_{3,}|\.{3,}|─{3,}`)
)

// maskVolatile replaces times, ids, addresses and temporary folders in a line. In a line with such parts, it also
// reduces blanks to one and rulers, such as "======", to three characters, because their length depends on the parts.
func maskVolatile(line string) string {
	original := line
	for _, m := range volatileMasks {
		line = m.pattern().ReplaceAllString(line, m.replacement)
	}
	line = hexadecimal().ReplaceAllStringFunc(line, maskID)
	if line == original {
		return line
	}
	line = blanks().ReplaceAllString(line, " ")
	return strings.TrimSpace(rulers().ReplaceAllStringFunc(line, func(ruler string) string { return string([]rune(ruler)[:3]) }))
}

// maskID masks a hexadecimal text that has digits and letters. Other texts may be numbers or words.
func maskID(text string) string {
	if strings.ContainsAny(text, "0123456789") && strings.ContainsAny(text, "abcdef") {
		return "<id>"
	}
	return text
}
