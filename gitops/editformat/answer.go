package editformat

import (
	"slices"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Format is how a model writes its edits.
type Format string

const (
	Diff  Format = "diff"  // SEARCH/REPLACE blocks
	Udiff Format = "udiff" // unified diffs, whose line numbers don't count
	Whole Format = "whole" // whole files
)

// Answer is the parsed text of a model. Anything but a whole block is words. If there are problems,
// apply no edit.
type Answer struct {
	Edits    []Edit   // in the order of the text
	Reads    []string // paths of the files to show, each once
	Commands []string // texts of shell scripts, in order
	Plan     []Step   // of the last plan in the text; nil for none
	Problems []string // of blocks that begin and are not whole or not clear, in words for the model
}

// Step is a step of a plan, like those of tools.
type Step struct {
	Step   string
	Status string // pending, in_progress, completed
}

// Edit is one block: a SEARCH/REPLACE block, a hunk or a whole file.
type Edit struct {
	Number int    // among the edits of the answer, from 1
	Line   int    // of the answer, from 1, where the block begins
	Path   string // as the answer spells it; empty where it names none

	act     act
	assumed bool         // the path is that of the edit before, which stands elsewhere
	isWord  bool         // the path may be a word, and stands for a file that is there
	lines   []v4a.Line   // what stays, goes and comes; of a whole file all come
	raw     []v4a.Line   // of a hunk: the same if lines that stay lack the blank in front
	pieces  [][]v4a.Line // of a block that leaves lines out: what is between them, in order
	// The hunk says that the old file had no final newline, or the new one has none.
	wasUnended, isUnended bool
}

type act int

const (
	change act = iota // lines of a file; where nothing stays or goes, those of a new one
	write             // the whole file
	remove            // the whole file, and there is to be none
)

// Paths returns the paths of files needed by edits, without duplicates: those named, and all known
// ones if a block names none.
func Paths(edits []Edit, known ...string) []string {
	paths := make([]string, 0, len(edits))
	nameless := false
	for _, e := range edits {
		nameless = nameless || e.Path == ""
		if e.Path != "" {
			paths = append(paths, e.Path)
		}
	}
	if nameless {
		paths = append(paths, known...)
	}
	return distinct(paths)
}

// distinct removes duplicates.
func distinct(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	return slices.DeleteFunc(texts, func(text string) bool {
		again := seen[text]
		seen[text] = true
		return again
	})
}
