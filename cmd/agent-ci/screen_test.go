package main_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// screen is what a terminal shows of what is written to it: text, ends of lines, and the few
// sequences that a status line takes. Others are faults. Lines that are too long are broken, anew
// where the width changes, as tmux and most terminals do.
type screen struct {
	columns  int
	lines    [][]string // the cells of each; the second cell of a wide character is empty
	row, at  int        // the cursor
	wraps    bool
	half     []byte // of a character
	sequence string // as far as it has come
	faults   []string
}

func newScreen(columns int) *screen {
	return &screen{columns: columns, lines: [][]string{nil}, wraps: true}
}

var sequences = map[string]func(*screen){
	"\x1b[J": func(s *screen) {
		s.lines = append(slices.Clone(s.lines[:s.row]), s.lines[s.row][:min(s.at, len(s.lines[s.row]))])
	},
	"\x1b[?7l": func(s *screen) { s.wraps = false },
	"\x1b[?7h": func(s *screen) { s.wraps = true },
	"\x1b[36m": func(*screen) {},
	"\x1b[39m": func(*screen) {},
	"\r":       func(s *screen) { s.at = 0 },
	"\n":       (*screen).nextLine,
}

// begins says whether a text is the beginning of a sequence.
func begins(text string) bool {
	for sequence := range sequences {
		if strings.HasPrefix(sequence, text) {
			return true
		}
	}
	return false
}

func (s *screen) nextLine() {
	if s.row++; s.row == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
	s.at = 0
}

func (s *screen) write(text []byte) {
	text = append(s.half, text...)
	for utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		s.take(r)
		text = text[n:]
	}
	s.half = slices.Clone(text)
}

func (s *screen) take(r rune) {
	s.sequence += string(r)
	do, whole := sequences[s.sequence]
	switch {
	case whole:
		do(s)
	case begins(s.sequence):
		return
	case unicode.IsControl(r) || s.sequence != string(r):
		s.faults = append(s.faults, s.sequence)
	default:
		s.put(r)
	}
	s.sequence = ""
}

// put writes a character where the cursor is.
func (s *screen) put(r rune) {
	line := s.lines[s.row]
	if unicode.Is(unicode.Mn, r) && s.at > 0 {
		line[s.at-1] += string(r)
		return
	}
	cells := []string{string(r)}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		cells = append(cells, "")
	}
	if !s.wraps {
		s.at = min(s.at, s.columns-len(cells))
	}
	s.lines[s.row] = append(line[:s.at:s.at], append(cells, line[min(s.at+len(cells), len(line)):]...)...)
	s.at += len(cells)
}

// shown are the last rows of the screen.
func (s *screen) shown(rows int) (all []string) {
	for _, line := range s.lines {
		for row := range slices.Chunk(line, s.columns) {
			all = append(all, strings.Join(row, ""))
		}
		if len(line) == 0 {
			all = append(all, "")
		}
	}
	return all[max(0, len(all)-rows):]
}

// status is the line that the cursor is in.
func (s *screen) status() string { return strings.Join(s.lines[s.row], "") }

func TestAScreenShowsWhatATerminalDoes(t *testing.T) {
	t.Parallel()
	s := newScreen(10)
	s.write([]byte("0123456789ab\r\n\x1b[?7l[one] é世 too long\x1b[?7h\r"))
	if got := strings.Join(s.shown(9), "|"); got != "0123456789|ab|[one] é世g" {
		t.Errorf("got %q", got)
	}
	s.columns = 6
	for _, c := range []byte("\r\x1b[J[two]\r\x1b[Jlast\n\x1b[2J\x07世") {
		s.write([]byte{c})
	}
	if got := strings.Join(s.shown(9), "|"); got != "012345|6789ab|last|J世" {
		t.Errorf("got %q", got)
	}
	if len(s.faults) != 2 {
		t.Errorf("faults %q", s.faults)
	}
}
