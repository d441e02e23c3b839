package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/match"
)

const (
	defaultFound = 100
	maxFound     = 2000
	// searchTime is the time limit of a search, as in the reference implementation.
	searchTime = 30 * time.Second
)

var grepSpec = tools.Spec{
	Name: "grep_files",
	Description: "Finds the files that have a line which matches a regular expression, and lists their paths: first what changed in this run, the newest file first, then the others by path. " +
		"Binary files and what git ignores are left out, unless path names something ignored. " +
		"With an empty pattern it lists the files whose path matches include.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` + grepProperties + `},"required":["pattern"],"additionalProperties":false}`),
	// Other agents' searches have this too.
	Accepts: json.RawMessage(`{"type":"object","properties":{` + grepProperties + `,"ignore_case":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`),
}

const grepProperties = `"pattern":{"type":"string","description":"Regular expression in RE2 syntax, matched line by line. (?i) in front of it ignores case."},` +
	`"include":{"type":"string","description":"Glob that limits which files are searched, such as *.go or src/**/*.{ts,tsx}."},` +
	`"path":{"type":"string","description":"Directory or file to search. Defaults to the working directory."},` +
	`"limit":{"type":"number","description":"Most paths to return. Defaults to 100."}`

// grepFiles is the tool grep_files.
type grepFiles struct {
	Options
	patience time.Duration // time limit of a search
}

type grepArguments struct {
	Pattern    string   `json:"pattern"`
	Include    string   `json:"include"`
	Path       string   `json:"path"`
	Limit      *float64 `json:"limit"`
	IgnoreCase bool     `json:"ignore_case"`
}

// grep runs grep_files. At the time limit, it returns a failed result with the files found so far.
func (g grepFiles) grep(ctx context.Context, a grepArguments) (tools.Result, error) {
	limited, stop := context.WithTimeout(ctx, g.patience)
	defer stop()
	found, _, err := g.findMatches(limited, a)
	if ctx.Err() != nil {
		return tools.Result{}, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return g.timedOut(found), nil
	}
	if err != nil {
		return tools.Result{}, err
	}
	return found.result(), nil
}

// findMatches runs the search of a call and returns the found files and the query. With an error it returns the files
// found so far.
func (g grepFiles) findMatches(ctx context.Context, a grepArguments) (searchResult, query, error) {
	q, err := a.query()
	if err != nil {
		return searchResult{}, q, err
	}
	location, err := g.locate(a.Path)
	if err != nil {
		return searchResult{}, q, err
	}
	defer location.close()
	found, err := g.search(ctx, location, q)
	return found, q, err
}

// query is the search of a call.
type query struct {
	pattern *match.Pattern // nil if only the path must match
	include include
	limit   int
}

// query returns the call's search, or a refusal. It sets the default of Path.
func (a *grepArguments) query() (query, error) {
	a.Path = cmp.Or(a.Path, ".")
	q := query{limit: min(toCount(a.Limit, defaultFound), maxFound)}
	if q.limit < 1 {
		return q, refusal("limit must be greater than zero")
	}
	var err error
	if q.include, err = newInclude(a.Include); err != nil {
		return q, err
	}
	if a.Pattern == "" {
		if a.Include == "" {
			return q, refusal("pattern must not be empty, unless include says which files to list")
		}
		return q, nil
	}
	q.pattern, err = a.compile()
	return q, err
}

// compile returns the call's pattern, or a refusal.
func (a *grepArguments) compile() (*match.Pattern, error) {
	expression := a.Pattern
	if a.IgnoreCase {
		expression = "(?i)" + expression
	}
	pattern, err := match.Compile(expression)
	switch {
	case errors.Is(err, match.ErrNewline):
		return nil, refusal(err.Error() + "; search for a part that stands on one line")
	case err != nil:
		words := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return nil, refusal(fmt.Sprintf("pattern is not valid in RE2 syntax (no look-around, no back-references): %s; to search for it as it stands, give %s",
			words, regexp.QuoteMeta(a.Pattern)))
	}
	return pattern, nil
}

// searchResult lists the found files in the order of [walk.Tree.Files].
type searchResult struct {
	paths      []string // as read_file accepts them
	hasMore    bool     // there may be further files
	unsearched []string // files in encodings that are not searched
	searched   int      // number of files searched
	total      int      // number of files to search
}

// describeUnsearched returns a sentence that lists the files not searched because of their encoding, or "".
func (f searchResult) describeUnsearched() string {
	if len(f.unsearched) == 0 {
		return ""
	}
	listed := make([]string, 0, len(f.unsearched))
	for _, path := range f.unsearched {
		listed = append(listed, oneLine(path))
	}
	return "(not searched, since they are UTF-16 or UTF-32, which commands such as iconv convert: " + clip.Some(listed, 5) + ")"
}

// result returns the result of a complete search.
func (f searchResult) result() tools.Result {
	detail := map[string]any{"files": len(f.paths)}
	if len(f.paths) == 0 {
		return tools.Result{Output: strings.TrimSuffix("No matches found.\n"+f.describeUnsearched(), "\n"), Detail: detail}
	}
	text := f.text()
	if f.hasMore {
		text += fmt.Sprintf("(the first %d; there are more: narrow the search with path or include, or raise limit, up to %d)\n", len(f.paths), maxFound)
	}
	if unread := f.describeUnsearched(); unread != "" {
		text += unread + "\n"
	}
	return tools.Result{Output: text, Detail: detail}
}

// text returns the found paths, one per line.
func (f searchResult) text() string {
	var text strings.Builder
	for _, path := range f.paths {
		text.WriteString(oneLine(path))
		text.WriteByte('\n')
	}
	return text.String()
}

// timedOut returns the result of a search that reached the time limit.
func (g grepFiles) timedOut(f searchResult) tools.Result {
	progress := "before all files were listed"
	if f.total > 0 {
		progress = fmt.Sprintf("with %d of %d files searched", f.searched, f.total)
	}
	text := fmt.Sprintf("grep_files: stopped after %v, %s; narrow the search with path or include\n", g.patience, progress)
	if len(f.paths) > 0 {
		text += "Found until then:\n" + f.text()
	}
	return tools.Result{Output: text, Failed: true, Detail: map[string]any{"files": len(f.paths)}}
}

// toolPath returns the path of a found file for the model: relative to the working directory, or absolute outside of it.
// path is relative to the searched location.
func (g grepFiles) toolPath(at location, path string) string {
	if at.rootPath != "" {
		return filepath.Join(g.absolutePath(at), path)
	}
	return filepath.Join(at.displayPath, path)
}
