package editformat

import "github.com/agent-ci/agent-ci/gitops/v4a"

// Format is a format in which a model writes its edits.
type Format string

const (
	Diff  Format = "diff"  // SEARCH/REPLACE blocks
	Udiff Format = "udiff" // unified diffs, whose line numbers don't count
	Whole Format = "whole" // whole files
)

// Answer is the parsed answer of a model. All text outside complete blocks is ignored. If there are
// problems, apply no edit.
type Answer struct {
	Edits    []Edit   // in the order of the text
	Reads    []string // paths of files that the model asks to see, each once
	Commands []string // shell scripts to run, in order
	Plan     []Step   // the last plan in the text, or nil
	Problems []string // incomplete or ambiguous blocks, described for the model
}

// Step is a step of a plan, as in the plan tool.
type Step struct {
	Step   string
	Status string // pending, in_progress, completed
}

// Edit is one block: a SEARCH/REPLACE block, a hunk or a whole file.
type Edit struct {
	Number int    // number among the edits of the answer, from 1
	Line   int    // line of the answer at which the block begins, from 1
	Path   string // as written in the answer; "" if it names none

	act     act
	assumed bool         // the block names no path, so the previous block's path is used
	isWord  bool         // the path may be an ordinary word, so it counts only if the file exists
	lines   []v4a.Line   // kept, removed and inserted lines; a whole file has only inserted ones
	raw     []v4a.Line   // of a hunk: lines if its kept lines are written without the leading blank
	pieces  [][]v4a.Line // of a block with "..." lines: the parts between them, in order
	// wasUnended and isUnended say that the old or the new file has no final newline, according to
	// the hunk.
	wasUnended, isUnended bool
}

type act int

const (
	change act = iota // change some lines; without kept or removed lines, fill a new file
	write             // write the whole file
	remove            // remove the file, giving all of its lines
)

// Paths returns the paths of the files that Apply needs, each once: those that edits name, and all
// of known if an edit names none.
func Paths(edits []Edit, known ...string) []string {
	paths := make([]string, 0, len(edits))
	nameless := false
	for _, e := range edits {
		if e.Path == "" {
			nameless = true
			continue
		}
		paths = append(paths, e.Path)
	}
	if nameless {
		paths = append(paths, known...)
	}
	return v4a.Distinct(paths)
}
