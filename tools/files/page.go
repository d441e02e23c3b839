package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxShown is the maximum number of bytes shown of a line in a Page, as in OpenCode.
const maxShown = 2000

// Page is a part of a text file.
type Page struct {
	First int               // the number of the first line
	Lines []string          // without line ends; long ones are cut
	Total int               // number of lines of the file
	Sum   [sha256.Size]byte // digest of the file
}

// Page returns up to maxLines lines of a file, from the line number first on, as many as fit. If [Refused] returns words
// for the error, they are for the model.
func (o Options) Page(ctx context.Context, name string, first, maxLines int) (Page, error) {
	limited, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	page, err := o.page(limited, name, first, maxLines)
	return page, explainTimeout(ctx, limited, name, err)
}

// page returns the lines of a file from the line first on, up to maxLines lines or about maxPage bytes. It reads the
// complete file, for its digest and number of lines. Unlike Page, it has no time limit.
func (o Options) page(ctx context.Context, name string, first, maxLines int) (Page, error) {
	file, err := o.open(name)
	if err != nil {
		return Page{}, o.suggestNames(name, err)
	}
	defer file.Close()
	digest := sha256.New()
	lines := newLineReader(io.TeeReader(contextReader{ctx, file}, digest), maxShown)
	if reason := lines.whyNotText(name); reason != "" {
		return Page{}, refusal(reason)
	}
	page, room := Page{First: first}, maxPage
	for {
		exists, err := lines.next()
		if err != nil {
			return Page{}, err
		}
		if !exists {
			break
		}
		hasRoom := len(page.Lines) < maxLines && room > 0
		switch {
		case lines.number >= first && hasRoom:
			text := lines.text()
			page.Lines = append(page.Lines, text)
			room -= len(text)
		case lines.number > first: // the page has ended
			room = 0
		}
	}
	page.Total = lines.number
	if first > max(page.Total, 1) {
		return Page{}, refusal(fmt.Sprintf("offset %d is behind the end of %s, whose last line is %d", first, name, page.Total))
	}
	digest.Sum(page.Sum[:0])
	return page, nil
}

const (
	maxSuggestions     = 3    // suggested names for a missing file
	minSuggestedLength = 3    // bytes of a name that is part of the missing name
	maxLookedAt        = 1000 // entries of the folder to compare
)

// suggestNames adds similar names in the same folder to err, if that is the refusal of a missing file.
func (o Options) suggestNames(name string, err error) error {
	missing := refuseOpen("file", name, fs.ErrNotExist)
	if !errors.Is(err, missing) {
		return err
	}
	similar := o.similarNames(name)
	if len(similar) == 0 {
		return err
	}
	return missing + refusal("; did you mean "+strings.Join(similar[:min(len(similar), maxSuggestions)], ", ")+"?")
}

// similarNames returns the paths of files with similar names in the same folder, sorted. It returns only files that
// commands can see.
func (o Options) similarNames(name string) (similar []string) {
	folder, base := filepath.Split(filepath.Clean(name))
	folderLocation, notFound := o.locate(cmp.Or(folder, "."))
	if notFound != nil {
		return nil
	}
	defer folderLocation.close()
	dir, notOpen := folderLocation.root.OpenFile(folderLocation.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if notOpen != nil {
		return nil
	}
	defer dir.Close()
	if folderLocation.rootPath != "" || folderLocation.refuseHidden(dir) != nil {
		return nil
	}
	entries, _ := dir.ReadDir(maxLookedAt)
	for _, entry := range entries {
		if inGitDirectory(entry.Name()) || !isSimilarName(entry.Name(), base) {
			continue
		}
		if found, notFound := o.locate(folder + entry.Name()); notFound == nil {
			found.close()
			similar = append(similar, oneLine(folder+entry.Name()))
		}
	}
	slices.Sort(similar)
	return similar
}

// isSimilarName reports whether one of two names contains the other, ignoring case. A very short name must not be the
// part, because it is in too many names.
func isSimilarName(name, wanted string) bool {
	name, wanted = strings.ToLower(name), strings.ToLower(wanted)
	if strings.Contains(name, wanted) {
		return true
	}
	return len(name) >= minSuggestedLength && strings.Contains(wanted, name)
}

// Refused returns the text for the model if err is a refusal of this package.
func Refused(err error) (words string, isRefusal bool) {
	refused, isRefusal := errors.AsType[refusal](err)
	return string(refused), isRefusal
}

// Matches holds matching lines by file, in the order of grep_files.
type Matches struct {
	Files []FileMatches
	More  bool // there are, or may be, further matches
	// Unread describes the files that were not searched, or is "".
	Unread string
}

// FileMatches holds a file's matching lines.
type FileMatches struct {
	Path  string // as read_file accepts it
	Lines []MatchedLine
}

// MatchedLine is a matching line; a long one is cut.
type MatchedLine struct {
	Number int
	Text   string
}

// Grep returns up to maxLines lines that match a regular expression, in the files at path that include selects. If
// [Refused] returns words for the error, they are for the model.
func (o Options) Grep(ctx context.Context, pattern, include, path string, maxLines int) (Matches, error) {
	g := grepFiles{o, searchTime}
	limited, stop := context.WithTimeout(ctx, g.patience)
	defer stop()
	found, q, err := g.findMatches(limited, grepArguments{Pattern: pattern, Include: include, Path: path, Limit: new(float64(maxLines))})
	all := Matches{More: found.hasMore, Unread: found.describeUnsearched()}
	for _, name := range found.paths {
		if maxLines <= 0 || err != nil {
			break
		}
		lines, hasMore, readErr := g.matchingLines(limited, name, q, maxLines)
		if readErr != nil { // the file was deleted since the search
			continue
		}
		all.Files = append(all.Files, FileMatches{name, lines})
		all.More = all.More || hasMore
		maxLines -= len(lines)
	}
	err = cmp.Or(err, limited.Err())
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = refusal(fmt.Sprintf("stopped after %v; narrow the search with path or include", g.patience))
	}
	all.More = all.More || maxLines <= 0
	return all, err
}

// matchingLines returns up to maxLines matching lines of a file. hasMore is true if there are further ones.
func (g grepFiles) matchingLines(ctx context.Context, name string, q query, maxLines int) (matching []MatchedLine, hasMore bool, err error) {
	file, err := g.open(name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	lines := newLineReader(contextReader{ctx, file}, maxShown)
	for {
		exists, err := lines.next()
		if err != nil {
			return matching, false, err
		}
		if !exists {
			return matching, false, nil
		}
		if !q.pattern.MatchLines(append(bytes.Clone(lines.line), '\n')) {
			continue
		}
		if len(matching) == maxLines {
			return matching, true, nil
		}
		matching = append(matching, MatchedLine{lines.number, lines.text()})
	}
}
