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
func (o Options) Page(ctx context.Context, name string, first, most int) (Page, error) {
	late, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	page, err := place(o).page(late, name, first, most)
	return page, inTime(ctx, late, name, err)
}

// page reads the whole file, for its digest and number of lines, and keeps the lines of the page. A page ends
// after most lines or maxPage bytes.
func (p place) page(ctx context.Context, name string, first, most int) (Page, error) {
	file, err := p.open(name)
	if err != nil {
		return Page{}, p.withNear(name, err)
	}
	defer file.Close()
	sum := sha256.New()
	lines := &lineReader{from: bufio.NewReaderSize(io.TeeReader(until{ctx, file}, sum), 64<<10), longest: maxShown}
	if why := lines.notText(name); why != "" {
		return Page{}, refusal(why)
	}
	shown, room := Page{First: first}, maxPage
	for {
		ok, err := lines.next()
		if err != nil {
			return Page{}, err
		}
		if !ok {
			break
		}
		if lines.number >= first && len(shown.Lines) < most && room > 0 {
			shown.Lines = append(shown.Lines, lines.text())
			room -= len(shown.Lines[len(shown.Lines)-1])
		} else if lines.number > first {
			room = 0 // what follows is no part of the page
		}
	}
	if shown.Total = lines.number; first > max(shown.Total, 1) {
		return Page{}, refusal(fmt.Sprintf("offset %d is behind the end of %s, whose last line is %d", first, name, shown.Total))
	}
	sum.Sum(shown.Sum[:0])
	return shown, nil
}

const (
	maxNear    = 3    // names like one that is missing
	shortNear  = 3    // bytes that a name has at least to be like a longer one
	lookedNear = 1000 // entries of its folder that are looked at
)

// withNear adds similar names in the same folder to a missing file's refusal.
func (p place) withNear(name string, err error) error {
	refused, is := errors.AsType[refusal](err)
	if !is || refused != notOpened("file", name, fs.ErrNotExist) {
		return err
	}
	folder, base := filepath.Split(filepath.Clean(name))
	at, notFound := p.find(cmp.Or(folder, "."))
	if notFound != nil {
		return err
	}
	defer at.close()
	dir, notOpen := at.root.OpenFile(at.inside, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if notOpen != nil {
		return err
	}
	defer dir.Close()
	if at.base != "" || at.mayShow(dir) != nil {
		return err
	}
	entries, _ := dir.ReadDir(lookedNear)
	var near []string
	for _, entry := range entries {
		have, want := strings.ToLower(entry.Name()), strings.ToLower(base)
		if !strings.Contains(have, want) && (len(have) < shortNear || !strings.Contains(want, have)) || inGitDirectory(entry.Name()) {
			continue
		}
		if beside, hidden := p.find(folder + entry.Name()); hidden == nil { // which commands see
			beside.close()
			near = append(near, oneLine(folder+entry.Name()))
		}
	}
	if len(near) == 0 {
		return err
	}
	slices.Sort(near)
	return refused + refusal("; did you mean "+strings.Join(near[:min(len(near), maxNear)], ", ")+"?")
}

// Refused returns the model's text of an error.
func Refused(err error) (words string, is bool) {
	refused, is := errors.AsType[refusal](err)
	return string(refused), is
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
func (o Options) Grep(ctx context.Context, pattern, include, path string, most int) (Matches, error) {
	g := grepFiles{place(o), searchTime}
	late, stop := context.WithTimeout(ctx, g.patience)
	defer stop()
	found, q, err := g.found(late, grepArguments{Pattern: pattern, Include: include, Path: path, Limit: new(float64(most))})
	all := Matches{More: found.more, Unread: found.unread()}
	for _, name := range found.paths {
		if most <= 0 || err != nil {
			break
		}
		lines, more, failed := g.lines(late, name, q, most)
		if failed != nil { // it has gone since
			continue
		}
		all.Files, most, all.More = append(all.Files, FileMatches{name, lines}), most-len(lines), all.More || more
	}
	if err == nil {
		err = late.Err()
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = refusal(fmt.Sprintf("stopped after %v; narrow the search with path or include", g.patience))
	}
	all.More = all.More || most <= 0
	return all, err
}

// lines returns a file's matching lines.
func (g grepFiles) lines(ctx context.Context, name string, q query, most int) (all []MatchedLine, more bool, err error) {
	file, err := g.open(name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	read := bufio.NewReaderSize(until{ctx, file}, 64<<10)
	lines := &lineReader{from: read, longest: maxShown}
	for {
		ok, err := lines.next()
		if err != nil || !ok {
			return all, false, err
		}
		if !q.pattern.MatchLines(append(bytes.Clone(lines.line), '\n')) {
			continue
		}
		if len(all) == most {
			return all, true, nil
		}
		all = append(all, MatchedLine{lines.number, lines.text()})
	}
}
