package editformat

import "slices"

// Format is how a model writes its edits.
type Format string

const (
	Diff  Format = "diff"  // SEARCH/REPLACE blocks
	Udiff Format = "udiff" // unified diffs, whose line numbers don't count
	Whole Format = "whole" // whole files
)

// Answer is what a text asks for. What is no whole block of it is words.
type Answer struct {
	Edits    []Edit   // in the order of the text
	Reads    []string // paths of the files to show
	Commands []string // texts of shell scripts, in order
	Plan     []Step   // of the last plan in the text; nil for none
	Problems []string // of blocks that begin and are not whole or not clear, in words for the model
}

// Asks reports whether there is anything but words.
func (a Answer) Asks() bool {
	return len(a.Edits)+len(a.Reads)+len(a.Commands)+len(a.Plan)+len(a.Problems) > 0
}

// Step is one step of a plan. Its fields are those of the steps that tools know.
type Step struct {
	Step   string
	Status string // pending, in_progress, completed
}

// Edit is one block: a SEARCH/REPLACE block, a hunk or a whole file.
type Edit struct {
	Number int    // among the blocks of the answer, from 1
	Line   int    // of the answer, from 1, where the block begins
	Path   string // as the answer spells it; empty where it names none
}

// Paths are those of the files whose texts edits need: those that they name and,
// where a block names none, those that are known. Each stands there once.
func Paths(edits []Edit, known ...string) []string {
	var paths []string
	for _, e := range edits {
		of := []string{e.Path}
		if e.Path == "" {
			of = known
		}
		for _, path := range of {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Parse takes an answer apart. It never fails.
func Parse(_ Format, _ string) Answer { return Answer{} }
