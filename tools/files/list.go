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

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files/internal/walk"
)

const (
	defaultEntries = 25
	defaultDepth   = 2
	// maxName is the maximum number of bytes shown of a name.
	maxName = 500
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

type listArguments struct {
	Path   string   `json:"dir_path"`
	Offset *float64 `json:"offset"`
	Limit  *float64 `json:"limit"`
	Depth  *float64 `json:"depth"`
}

// listDir runs list_dir.
func (o Options) listDir(ctx context.Context, a listArguments) (tools.Result, error) {
	list, err := a.newListing()
	if err != nil {
		return tools.Result{}, err
	}
	at, err := o.locate(a.Path)
	if err != nil {
		return tools.Result{}, err
	}
	defer at.close()
	tree, err := o.openTree(at)
	if err != nil {
		return tools.Result{}, err
	}
	defer tree.close()
	list.tree = tree.Tree
	fmt.Fprintf(&list.text, "Absolute path: %s\n", oneLine(o.absolutePath(at)))
	if err := list.addFolder(ctx, tree.Top(), 0); err != nil {
		return tools.Result{}, err
	}
	return list.result()
}

// absolutePath returns the absolute path of a location, for the model.
func (o Options) absolutePath(location location) string {
	if location.rootPath != "" {
		return filepath.Join(location.rootPath, location.displayPath)
	}
	return filepath.Join(o.Dir.Path, location.displayPath)
}

// newListing returns an empty listing with the limits in the call, or a refusal.
func (a listArguments) newListing() (*listing, error) {
	l := &listing{first: toCount(a.Offset, 1), limit: toCount(a.Limit, defaultEntries), depth: toCount(a.Depth, defaultDepth)}
	switch {
	case l.first < 1:
		return nil, refusal("offset must be a 1-indexed entry number")
	case l.limit < 1:
		return nil, refusal("limit must be greater than zero")
	case l.depth < 1:
		return nil, refusal("depth must be greater than zero")
	}
	return l, nil
}

// listing collects a page of entries: those of each folder sorted by name, each followed by the entries in it.
type listing struct {
	tree                *walk.Tree
	first, limit, depth int // number of the first entry of the page, maximum number of entries, and number of levels

	text    strings.Builder
	entries int  // number of entries visited
	shown   int  // number of entries on the page
	hasMore bool // there are entries after the page
}

// addFolder adds the entries of a folder and of the folders below it, down to the requested depth. It stops when the
// page is full. Folders below that cannot be listed are shown by their name alone.
func (l *listing) addFolder(ctx context.Context, f walk.Folder, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, f, err := l.tree.List(f)
	if err != nil && level > 0 {
		return nil
	}
	if err != nil {
		return refuseOpen("directory", "it", err)
	}
	for _, e := range entries {
		l.addEntry(e, level)
		if l.hasMore {
			return nil
		}
		if e.Mode.IsDir() && level+1 < l.depth {
			if err := l.addFolder(ctx, f.Below(e), level+1); err != nil {
				return err
			}
			if l.hasMore {
				return nil
			}
		}
	}
	return nil
}

// addEntry counts an entry, and adds it to the page if it belongs there.
func (l *listing) addEntry(e walk.Entry, level int) {
	l.entries++
	switch {
	case l.entries < l.first: // above the page
	case l.shown == l.limit || l.text.Len() >= maxPage:
		l.hasMore = true
	default:
		l.shown++
		fmt.Fprintf(&l.text, "%s%s%s\n", strings.Repeat("  ", min(level, 100)), clip.Bytes(oneLine(e.Name), maxName), typeMark(e.Mode))
	}
}

// result returns the listing as a result, or a refusal if the page is behind the last entry.
func (l *listing) result() (tools.Result, error) {
	switch {
	case l.entries == 0:
		l.text.WriteString("(nothing is in it, or nothing that git does not ignore)\n")
	case l.shown == 0:
		return tools.Result{}, refusal(fmt.Sprintf("offset exceeds directory entry count: there are %d to this depth", l.entries))
	case l.hasMore:
		fmt.Fprintf(&l.text, "More than %d entries found; go on with offset %d\n", l.shown, l.first+l.shown)
	}
	return tools.Result{Output: l.text.String()}, nil
}

// typeMark returns the mark after a name that shows the entry's type, and "" for a regular file.
func typeMark(mode fs.FileMode) string {
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

// oneLine returns a name or path as one line of text. It quotes a name with control characters or invalid UTF-8.
func oneLine(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
		return name
	}
	return strconv.Quote(name)
}
