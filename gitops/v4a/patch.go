package v4a

import "slices"

// Op is the operation of a section.
type Op string

const (
	Add    Op = "add"    // write a whole file, over what may be there
	Update Op = "update" // change parts of a file, and perhaps move it
	Delete Op = "delete" // remove a file
)

// Letter returns the operation as git writes it.
func (o Op) Letter() string { return map[Op]string{Add: "A", Update: "M", Delete: "D"}[o] }

// MarshalText makes Letter the form in JSON.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.Letter()), nil }

// Patch is a parsed patch. Nothing of it has been compared with any file.
type Patch struct {
	// Environment is the value of "*** Environment ID:", or "". It is ignored: a run has one work
	// tree.
	Environment string
	Sections    []Section
}

// Section is the change of one file.
type Section struct {
	Op     Op
	Path   string // as the patch spells it
	MoveTo string // the new path of an updated file, or empty
	Line   int    // of the header in the patch, from 1; 0 in a bare diff

	Content string // of an added file
	Hunks   []Hunk // of an updated file, in file order

	bare   bool   // came without an envelope: the rules of the Agents SDKs hold
	ending string // of a bare diff: that of a file that has none
}

// Hunk is one change at one place of a file.
type Hunk struct {
	Line      int      // where it starts in the patch, from 1
	Context   []string // the lines named by its "@@" lines, outermost first
	Lines     []Line
	EndOfFile bool // its lines are the last of the file

	contextLines []int // the lines of the patch that hold Context
	stacked      bool  // its "@@" lines are several, one without a line too
	first        int   // line of the patch that holds Lines[0]
}

type Line struct {
	Kind Kind
	Text string // without the kind and without a line ending
}

// Kind is the meaning of a hunk's line: its first character in the patch.
type Kind byte

const (
	Keep   Kind = ' '
	Insert Kind = '+'
	Remove Kind = '-'
)

// oldLines returns the expected lines of a hunk.
func oldLines(lines []Line) []string {
	old := make([]string, 0, len(lines))
	for _, l := range lines {
		if l.Kind != Insert {
			old = append(old, l.Text)
		}
	}
	return old
}

// Paths returns the paths named in a patch, in order and unchanged, without duplicates. It does not
// resolve links.
func Paths(p *Patch) []string {
	var paths []string
	for _, s := range p.Sections {
		paths = append(paths, s.Path)
		if s.MoveTo != "" {
			paths = append(paths, s.MoveTo)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(paths, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}
