package v4a

import "slices"

// Op is the operation of a section.
type Op string

const (
	Add    Op = "add"    // write a whole file, replacing an existing one
	Update Op = "update" // change parts of a file, and perhaps move it
	Delete Op = "delete" // remove a file
)

// Letter returns the letter that git uses for the operation.
func (o Op) Letter() string { return map[Op]string{Add: "A", Update: "M", Delete: "D"}[o] }

// MarshalText returns Letter, so that JSON contains the letter.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.Letter()), nil }

// Patch has the sections of a parsed patch in order. It was not compared with any file yet.
type Patch []Section

// Section is the change of one file.
type Section struct {
	Op     Op
	Path   string // as written in the patch
	MoveTo string // new path of a moved file, or ""
	Line   int    // line of the header in the patch, from 1; 0 in a bare diff

	Content string // of an added file
	Hunks   []Hunk // of an updated file, in file order

	isBare bool   // from a patch without an envelope, to which the rules of the Agents SDKs apply
	ending string // line ending of a bare diff, for a file that has no line ending
}

// Hunk is one change at one place of a file.
type Hunk struct {
	Line      int      // its first line in the patch, from 1
	Context   []string // lines named in its "@@" lines, outermost first
	Lines     []Line
	EndOfFile bool // its lines must be the last of the file

	contextLines       []int // line numbers of Context in the patch
	hasSeveralContexts bool  // it has several "@@" lines, counting those without text
	firstLine          int   // line number of Lines[0] in the patch
}

type Line struct {
	Kind Kind
	Text string // without the first character and the line ending
}

// Kind is the meaning of a hunk's line: its first character in the patch.
type Kind byte

const (
	Keep   Kind = ' '
	Insert Kind = '+'
	Remove Kind = '-'
)

// OldLines returns the lines that a hunk expects in the file.
func OldLines(lines []Line) []string { return textsExcept(lines, Insert) }

// NewLines returns the lines that a hunk leaves in the file.
func NewLines(lines []Line) []string { return textsExcept(lines, Remove) }

// textsExcept returns the texts of the lines whose kind is not kind.
func textsExcept(lines []Line, kind Kind) []string {
	texts := make([]string, 0, len(lines))
	for _, l := range lines {
		if l.Kind != kind {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

// Paths returns the paths in a patch in order, as written, each once. It does not resolve links.
func Paths(p Patch) []string {
	var paths []string
	for _, s := range p {
		paths = append(paths, s.Path)
		if s.MoveTo != "" {
			paths = append(paths, s.MoveTo)
		}
	}
	return Distinct(paths)
}

// Distinct removes duplicates from a list, which it changes.
func Distinct(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	return slices.DeleteFunc(texts, func(text string) bool {
		again := seen[text]
		seen[text] = true
		return again
	})
}
