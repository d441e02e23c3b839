package files

import (
	"bufio"
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

// maxShown is how many bytes of a line are shown as OpenCode shows lines.
const maxShown = 2000

// Page is a part of a text file.
type Page struct {
	First int      // the number of the first line
	Lines []string // as they are shown: without their ends, long ones cut
	Total int      // lines of the file
	Sum   [sha256.Size]byte
}

// Page reads as many lines as fit. Errors with [Refused] words are for the model.
func (o Options) Page(ctx context.Context, name string, first, maxLines int) (Page, error) {
	limited, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	page, err := resolver(o).page(limited, name, first, maxLines)
	return page, explainTimeout(ctx, limited, name, err)
}

// page reads the whole file, for its digest and number of lines, and keeps the lines of the page. A page ends
// after maxLines lines or maxPage bytes.
func (p resolver) page(ctx context.Context, name string, first, maxLines int) (Page, error) {
	file, err := p.open(name)
	if err != nil {
		return Page{}, p.suggestNames(name, err)
	}
	defer file.Close()
	digest := sha256.New()
	lines := &lineReader{from: bufio.NewReaderSize(io.TeeReader(contextReader{ctx, file}, digest), 64<<10), maxLength: maxShown}
	if why := lines.whyNotText(name); why != "" {
		return Page{}, refusal(why)
	}
	page, room := Page{First: first}, maxPage
	for {
		ok, err := lines.next()
		if err != nil {
			return Page{}, err
		}
		if !ok {
			break
		}
		if lines.number >= first && len(page.Lines) < maxLines && room > 0 {
			page.Lines = append(page.Lines, lines.text())
			room -= len(page.Lines[len(page.Lines)-1])
		} else if lines.number > first {
			room = 0 // what follows is no part of the page
		}
	}
	if page.Total = lines.number; first > max(page.Total, 1) {
		return Page{}, refusal(fmt.Sprintf("offset %d is behind the end of %s, whose last line is %d", first, name, page.Total))
	}
	digest.Sum(page.Sum[:0])
	return page, nil
}

const (
	maxSuggestions     = 3    // names like one that is missing
	minSuggestedLength = 3    // bytes that a name has at least to be like a longer one
	maxLookedAt        = 1000 // entries of its folder that are looked at
)

// suggestNames adds similar names in the same folder to a missing file's refusal.
func (p resolver) suggestNames(name string, err error) error {
	refused, ok := errors.AsType[refusal](err)
	if !ok || refused != refuseOpen("file", name, fs.ErrNotExist) {
		return err
	}
	folder, base := filepath.Split(filepath.Clean(name))
	folderLocation, notFound := p.locate(cmp.Or(folder, "."))
	if notFound != nil {
		return err
	}
	defer folderLocation.close()
	dir, notOpen := folderLocation.root.OpenFile(folderLocation.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if notOpen != nil {
		return err
	}
	defer dir.Close()
	if folderLocation.rootPath != "" || folderLocation.refuseHidden(dir) != nil {
		return err
	}
	entries, _ := dir.ReadDir(maxLookedAt)
	var similar []string
	for _, entry := range entries {
		if inGitDirectory(entry.Name()) || !isSimilarName(entry.Name(), base) {
			continue
		}
		if found, refused := p.locate(folder + entry.Name()); refused == nil { // commands can see the file
			found.close()
			similar = append(similar, oneLine(folder+entry.Name()))
		}
	}
	if len(similar) == 0 {
		return err
	}
	slices.Sort(similar)
	return refused + refusal("; did you mean "+strings.Join(similar[:min(len(similar), maxSuggestions)], ", ")+"?")
}

// isSimilarName reports whether one of two names contains the other. A very short name is in too many others.
func isSimilarName(name, wanted string) bool {
	name, wanted = strings.ToLower(name), strings.ToLower(wanted)
	if strings.Contains(name, wanted) {
		return true
	}
	return len(name) >= minSuggestedLength && strings.Contains(wanted, name)
}

// Refused returns the model's text of an error.
func Refused(err error) (words string, ok bool) {
	refused, ok := errors.AsType[refusal](err)
	return string(refused), ok
}

// Matches holds matching lines by file, in the order of grep_files.
type Matches struct {
	Files []FileMatches
	More  bool // there are, or may be, others
	// Unread describes files not searched, or is "".
	Unread string
}

// FileMatches holds a file's matching lines.
type FileMatches struct {
	Path  string // as the tools that read take it
	Lines []MatchedLine
}

// MatchedLine is a line as shown.
type MatchedLine struct {
	Number int
	Text   string
}

// Grep returns up to most lines that match a regular expression, in files below a path that fit
// include. Errors with [Refused] words are for the model.
func (o Options) Grep(ctx context.Context, pattern, include, path string, maxLines int) (Matches, error) {
	g := grepFiles{resolver(o), searchTime}
	limited, stop := context.WithTimeout(ctx, g.patience)
	defer stop()
	found, q, err := g.findMatches(limited, grepArguments{Pattern: pattern, Include: include, Path: path, Limit: new(float64(maxLines))})
	all := Matches{More: found.more, Unread: found.describeUnsearched()}
	for _, name := range found.paths {
		if maxLines <= 0 || err != nil {
			break
		}
		lines, more, readErr := g.matchingLines(limited, name, q, maxLines)
		if readErr != nil { // it has gone since
			continue
		}
		all.Files = append(all.Files, FileMatches{name, lines})
		all.More = all.More || more
		maxLines -= len(lines)
	}
	if err == nil {
		err = limited.Err()
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = refusal(fmt.Sprintf("stopped after %v; narrow the search with path or include", g.patience))
	}
	all.More = all.More || maxLines <= 0
	return all, err
}

// matchingLines returns a file's matching lines.
func (g grepFiles) matchingLines(ctx context.Context, name string, q query, maxLines int) (matching []MatchedLine, more bool, err error) {
	file, err := g.open(name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	read := bufio.NewReaderSize(contextReader{ctx, file}, 64<<10)
	lines := &lineReader{from: read, maxLength: maxShown}
	for {
		ok, err := lines.next()
		if err != nil || !ok {
			return matching, false, err
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
