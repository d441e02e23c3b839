package editformat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// MismatchError reports blocks that do not fit. No block was applied. Its text is written for the
// model.
type MismatchError struct {
	Fits   []int // the numbers of the blocks that fit
	Misfit []Misfit
}

// Misfit is a block that does not fit.
type Misfit struct {
	Number int
	Line   int    // of the answer
	Path   string // "" if the block names none
	Why    string // the reason, with the nearest lines if there are any
}

// shownMisfits is the largest number of misfits reported with a reason.
const shownMisfits = 4

// Error returns the report for the model: the reasons of the first misfits, and the blocks that
// fit.
func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing was changed: %d of %d blocks cannot be applied.\n", len(e.Misfit), len(e.Misfit)+len(e.Fits))
	var others []int
	for i, m := range e.Misfit {
		if i >= shownMisfits {
			others = append(others, m.Number)
			continue
		}
		path := m.Path
		if path == "" {
			path = "no path"
		}
		fmt.Fprintf(&b, "\nBlock %d (%s, line %d of the answer): %s\n", m.Number, path, m.Line, strings.TrimSpace(m.Why))
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, "\nNor can blocks %s.\n", numbers(others))
	}
	if len(e.Fits) > 0 {
		fmt.Fprintf(&b, "\nBlocks that fit: %s. All blocks of an answer are applied or none: send these again with the corrected ones.\n", numbers(e.Fits))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shownNumbers is the largest number of entries in a list of numbers.
const shownNumbers = 30

// numbers formats sorted numbers, with ranges for consecutive ones.
func numbers(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		part := strconv.Itoa(list[i])
		if last > i {
			part += "–" + strconv.Itoa(list[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return clip.List(parts, shownNumbers)
}
