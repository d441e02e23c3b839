package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

const (
	defaultEntries = 25
	defaultDepth   = 2
	// longestName is how many bytes of a name are shown.
	longestName = 500
)

var listSpec = tools.Spec{
	Name: "list_dir",
	Description: "Lists the entries of a directory, and of those in it to a depth. A directory ends with /, a link with @, what is neither that nor a file with ?. " +
		"What git ignores is left out, unless the directory itself is ignored.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"dir_path":{"type":"string","description":"Path of the directory, relative to the working directory or absolute."},` +
		`"offset":{"type":"number","description":"Number of the first entry to return, from 1. Defaults to 1."},` +
		`"limit":{"type":"number","description":"Most entries to return. Defaults to 25."},` +
		`"depth":{"type":"number","description":"How many levels to go down, from 1. Defaults to 2."}` +
		`},"required":["dir_path"],"additionalProperties":false}`),
}

// listDir is list_dir.
type listDir struct{ place }

type listArguments struct {
	Path   string   `json:"dir_path"`
	Offset *float64 `json:"offset"`
	Limit  *float64 `json:"limit"`
	Depth  *float64 `json:"depth"`
}

func (listDir) Spec() tools.Spec { return listSpec }
func (listDir) Mutates() bool    { return false }

// Run lists a part of a directory.
func (l listDir) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	return answer(listSpec.Name, call, func(a listArguments) (tools.Result, error) {
		text, err := l.list(ctx, a)
		return tools.Result{Output: text}, err
	})
}

func (l listDir) list(ctx context.Context, a listArguments) (string, error) {
	window, err := a.window()
	if err != nil {
		return "", err
	}
	at, err := l.find(a.Path)
	if err != nil {
		return "", err
	}
	defer at.close()
	tree, err := l.tree(at)
	if err != nil {
		return "", err
	}
	defer tree.close()
	window.tree = tree.Tree
	fmt.Fprintf(&window.text, "Absolute path: %s\n", oneLine(l.absolute(at)))
	if err := window.add(ctx, tree.Top(), 0); err != nil {
		return "", err
	}
	return window.String()
}

func (p place) absolute(at spot) string {
	if at.base != "" {
		return filepath.Join(at.base, at.shown)
	}
	return filepath.Join(p.dir, at.shown)
}

// window is the part of the listing that the call asks for.
func (a listArguments) window() (*listing, error) {
	l := &listing{first: 1, limit: defaultEntries, depth: defaultDepth}
	for _, number := range []struct {
		given *float64
		to    *int
		wrong string
	}{
		{a.Offset, &l.first, "offset must be a 1-indexed entry number"},
		{a.Limit, &l.limit, "limit must be greater than zero"},
		{a.Depth, &l.depth, "depth must be greater than zero"},
	} {
		if number.given != nil {
			*number.to = whole(*number.given)
		}
		if *number.to < 1 {
			return nil, refusal(number.wrong)
		}
	}
	return l, nil
}

// listing collects the entries from first on, each folder's in the order of
// their names and followed by what is in them.
type listing struct {
	tree                *walk.Tree
	first, limit, depth int

	text  strings.Builder
	seen  int
	shown int
	more  bool
}

func (l *listing) add(ctx context.Context, f walk.Folder, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, f, err := l.tree.List(f)
	if err != nil && level > 0 {
		return nil // what can't be listed is shown by its name alone
	}
	if err != nil {
		return refusal(notOpened("directory", "it", err))
	}
	for _, e := range entries {
		l.show(e, level)
		if l.more {
			return nil
		}
		if e.Mode.IsDir() && level+1 < l.depth {
			if err := l.add(ctx, f.Below(e), level+1); err != nil || l.more {
				return err
			}
		}
	}
	return nil
}

func (l *listing) show(e walk.Entry, level int) {
	l.seen++
	switch {
	case l.seen < l.first:
	case l.shown == l.limit || l.text.Len() >= longestPage:
		l.more = true
	default:
		l.shown++
		fmt.Fprintf(&l.text, "%s%s%s\n", strings.Repeat("  ", min(level, 100)), short(e.Name), suffix(e.Mode))
	}
}

func (l *listing) String() (string, error) {
	switch {
	case l.seen == 0:
		l.text.WriteString("(nothing is in it, or nothing that git does not ignore)\n")
	case l.shown == 0:
		return "", refusal(fmt.Sprintf("offset exceeds directory entry count: there are %d to this depth", l.seen))
	case l.more:
		fmt.Fprintf(&l.text, "More than %d entries found; go on with offset %d\n", l.shown, l.first+l.shown)
	}
	return l.text.String(), nil
}

func suffix(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "/"
	case mode&fs.ModeSymlink != 0:
		return "@"
	case !mode.IsRegular():
		return "?"
	}
	return ""
}

// short is a name as it is shown, cut where it is very long.
func short(name string) string {
	name = oneLine(name)
	if len(name) <= longestName {
		return name
	}
	end := longestName
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}

// oneLine is a name or a path as one line of text, whatever bytes it has.
func oneLine(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
		return name
	}
	return strconv.Quote(name)
}
