package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/gitops/charset"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
)

const (
	defaultLines = 2000
	// maxLine is the maximum number of bytes shown of a line, as in the reference implementation.
	maxLine = 500
	// maxPage is the maximum size of a page, in bytes. It is slightly below tools.DefaultBudget, because a page with an
	// end is more useful than one with a gap.
	maxPage = 36 << 10
	// readPatience is the time limit of reading a file. A sparse file may be extremely long.
	readPatience = 30 * time.Second
)

var readSpec = tools.Spec{
	Name: "read_file",
	Description: "Reads a text file and returns its lines as \"L<number>: <text>\". " +
		"Long files come in pages: the answer says at which offset to go on. " +
		"Mode indentation returns the block of code around a line.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"file_path":{"type":"string","description":"Path of the file, relative to the working directory or absolute."},` +
		`"offset":{"type":"number","description":"Number of the first line to return, from 1. Defaults to 1."},` +
		`"limit":{"type":"number","description":"Most lines to return. Defaults to 2000."},` +
		`"mode":{"type":"string","enum":["slice","indentation"],"description":"slice (the default) returns lines from offset on, indentation the block around an anchor line."},` +
		`"indentation":{"type":"object","description":"Settings of mode indentation.","properties":{` +
		`"anchor_line":{"type":"number","description":"Line that the block is around. Defaults to offset."},` +
		`"max_levels":{"type":"number","description":"How many levels of smaller indentation to include. 0, the default, means all."},` +
		`"include_siblings":{"type":"boolean","description":"Include the blocks beside this one that have the same indentation. Defaults to false."},` +
		`"include_header":{"type":"boolean","description":"Include comments and attributes directly above the block. Defaults to true."},` +
		`"max_lines":{"type":"number","description":"Most lines to return in this mode."}` +
		`},"additionalProperties":false}` +
		`},"required":["file_path"],"additionalProperties":false}`),
}

type readArguments struct {
	Path   string         `json:"file_path"`
	Offset *float64       `json:"offset"`
	Limit  *float64       `json:"limit"`
	Mode   string         `json:"mode"`
	Block  blockArguments `json:"indentation"`
}

// readFile runs read_file.
func (o Options) readFile(ctx context.Context, a readArguments) (tools.Result, error) {
	limited, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	text, err := o.readPart(limited, a)
	return tools.Result{Output: text}, explainTimeout(ctx, limited, a.Path, err)
}

// explainTimeout returns err, the error of reading a file, or a refusal if the time limit of the context limited caused
// it.
func explainTimeout(ctx, limited context.Context, name string, err error) error {
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return refusal(fmt.Sprintf("%s could not be read within %v; look at a part of it with a command", name, readPatience))
	}
	return err
}

// contextReader is a reader that fails when ctx ends, because a single line may be endless.
type contextReader struct {
	ctx  context.Context
	file *os.File
}

// Read reads from the file.
func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.ctx.Err()
	}
	return r.file.Read(p)
}

// readPart returns the requested part of a file as text.
func (o Options) readPart(ctx context.Context, a readArguments) (string, error) {
	mode, err := a.mode()
	if err != nil {
		return "", err
	}
	file, err := o.open(a.Path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := newLineReader(contextReader{ctx, file}, maxLine)
	if reason := lines.whyNotText(a.Path); reason != "" {
		return "", refusal(reason)
	}
	return mode.read(lines)
}

// readMode is a requested part of a file.
type readMode interface {
	read(lines *lineReader) (string, error)
}

// mode returns the part of the file that a call asks for, or a refusal.
func (a readArguments) mode() (readMode, error) {
	offset, limit := toCount(a.Offset, 1), toCount(a.Limit, defaultLines)
	switch {
	case offset < 1:
		return nil, refusal("offset must be a 1-indexed line number")
	case limit < 1:
		return nil, refusal("limit must be greater than zero")
	case a.Mode == "indentation":
		return a.Block.block(offset, limit)
	}
	return &page{first: offset, last: offset + limit - 1}, nil
}

// toCount converts a number in a call to a count, rounding down. It returns byDefault if there is none.
func toCount(given *float64, byDefault int) int {
	if given == nil {
		return byDefault
	}
	return int(math.Floor(min(max(*given, 0), math.MaxInt32)))
}

// page collects the lines from number first to number last, as many as fit.
type page struct {
	first, last int
	text        strings.Builder
	shownLines  int
	invalidUTF8 bool // a line is not UTF-8
	hasMore     bool
}

// read reads the page and returns it as text.
func (p *page) read(lines *lineReader) (string, error) {
	if err := p.fill(lines); err != nil {
		return "", err
	}
	switch {
	case lines.number == 0:
		return "The file is empty.", nil
	case p.shownLines == 0:
		return "", refusal(fmt.Sprintf("offset exceeds file length: the last line is %d", lines.number))
	}
	return p.String(), nil
}

// fill adds lines up to the last requested one or maxPage bytes. It sets hasMore if further lines follow.
func (p *page) fill(lines *lineReader) error {
	for {
		exists, err := lines.next()
		if err != nil {
			return err
		}
		if !exists {
			return nil
		}
		if lines.number < p.first {
			continue
		}
		if lines.number > p.last || p.text.Len() >= maxPage {
			p.hasMore = true
			return nil
		}
		text := lines.text()
		fmt.Fprintf(&p.text, "L%d: %s\n", lines.number, text)
		p.invalidUTF8 = p.invalidUTF8 || !utf8.ValidString(text)
		p.shownLines++
	}
}

// String returns the lines of the page, followed by notes for the model.
func (p *page) String() string {
	if p.hasMore {
		fmt.Fprintf(&p.text, "(more lines follow; go on with offset %d)\n", p.first+p.shownLines)
	}
	if p.invalidUTF8 {
		p.text.WriteString("(some lines are not UTF-8: patches can't match what is shown as \uFFFD; change those lines with a command)\n")
	}
	return p.text.String()
}

// lineReader reads a file line by line. It keeps only the beginning of a long line.
type lineReader struct {
	from      *bufio.Reader
	maxLength int    // maximum number of bytes shown of a line
	number    int    // number of the current line, from 1
	line      []byte // beginning of the current line
	length    int    // length of the current line in bytes, without its end
}

func newLineReader(from io.Reader, maxLength int) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(from, 64<<10), maxLength: maxLength}
}

// whyNotText returns why a file cannot be shown as text, or "" if it can. Call it before reading lines.
func (l *lineReader) whyNotText(name string) string {
	head, _ := l.from.Peek(charset.Head) // next reports an error
	encoding := charset.Of(head)
	switch {
	case encoding != "":
		return name + " is text in " + encoding + ", which is not read here; " + charset.Advice(encoding)
	case bytes.IndexByte(head, 0) >= 0:
		return name + " is a binary file"
	}
	return ""
}

// next reads the next line. exists is false at the end of the file.
func (l *lineReader) next() (exists bool, err error) {
	l.line, l.length = l.line[:0], 0
	for {
		piece, err := l.from.ReadSlice('\n')
		ended := err == nil
		l.add(bytes.TrimSuffix(piece, []byte("\n")))
		switch {
		case ended:
			l.number++
			return true, nil
		case errors.Is(err, bufio.ErrBufferFull): // the line continues
		case errors.Is(err, io.EOF):
			if l.length > 0 {
				l.number++
			}
			return l.length > 0, nil
		default:
			return false, fmt.Errorf("read line %d: %w", l.number+1, err)
		}
	}
}

// add appends a piece of the current line. It keeps up to maxLength bytes of the line, and one character more, so that
// text can see that the line is longer.
func (l *lineReader) add(piece []byte) {
	l.length += len(piece)
	room := l.maxLength + utf8.UTFMax - len(l.line)
	l.line = append(l.line, piece[:min(room, len(piece))]...)
}

// text returns the current line for showing: without the CR of a CRLF, and cut to maxLength with a note.
func (l *lineReader) text() string {
	isWhole := l.length == len(l.line)
	if isWhole {
		l.line = bytes.TrimSuffix(l.line, []byte("\r"))
	}
	if len(l.line) <= l.maxLength {
		return string(l.line)
	}
	return fmt.Sprintf("%s (line cut; it has %d bytes)", clip.Bytes(string(l.line), l.maxLength), l.length)
}
