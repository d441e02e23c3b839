package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// Page is a part of a text file, with what is known of all of it.
type Page struct {
	First int      // the number of the first line
	Lines []string // as they are shown: without their ends, long ones cut
	Total int      // lines of the file
	Sum   [sha256.Size]byte
}

// Page reads lines of a file, as many as there is room for. The error is in words for the model
// where [Refused] says so.
func (o Options) Page(ctx context.Context, name string, first, most int) (Page, error) {
	late, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	page, err := place(o).page(late, name, first, most)
	return page, inTime(ctx, late, name, err)
}

func (p place) page(ctx context.Context, name string, first, most int) (Page, error) {
	file, err := p.open(name)
	if err != nil {
		return Page{}, err
	}
	defer file.Close()
	sum := sha256.New()
	lines := &lineReader{from: bufio.NewReaderSize(io.TeeReader(until{ctx, file}, sum), 64<<10)}
	if why := lines.notText(name); why != "" {
		return Page{}, refusal(why)
	}
	shown, room := Page{First: first}, longestPage
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

// Refused are the words of an error that is for the model.
func Refused(err error) (words string, is bool) {
	refused, is := errors.AsType[refusal](err)
	return string(refused), is
}

// Matches are the lines that a search found, file by file, in the order of grep_files.
type Matches struct {
	Files []FileMatches
	More  bool // there are, or may be, others
	// Unread are files that were not searched, in words for the model; empty for none.
	Unread string
}

// FileMatches are those of a file.
type FileMatches struct {
	Path  string // as the tools that read take it
	Lines []MatchedLine
}

// MatchedLine is a line as it is shown.
type MatchedLine struct {
	Number int
	Text   string
}

// Grep finds lines that match a regular expression, at most so many, in the files below a path whose
// path fits include. The error is in words for the model where [Refused] says so.
func (o Options) Grep(ctx context.Context, pattern, include, path string, most int) (Matches, error) {
	g := grepFiles{place(o), searchTime}
	a := grepArguments{Pattern: pattern, Include: include, Path: path}
	q, err := a.query()
	if err != nil {
		return Matches{}, err
	}
	q.limit = most
	at, err := g.find(a.Path)
	if err != nil {
		return Matches{}, err
	}
	defer at.close()
	late, stop := context.WithTimeout(ctx, g.patience)
	defer stop()
	found, err := g.search(late, at, q)
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

// lines are those of a file that match.
func (g grepFiles) lines(ctx context.Context, name string, q query, most int) (all []MatchedLine, more bool, err error) {
	file, err := g.open(name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	read := bufio.NewReaderSize(until{ctx, file}, 64<<10)
	lines := &lineReader{from: read}
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
