package runcmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// failingOutcomes is the set of outcomes with an exit status other than 0.
type failingOutcomes map[outcome.Outcome]bool

// parseFailOn parses the value of --fail-on: outcomes separated by commas or white space. Empty means failures.
func parseFailOn(list string) (failingOutcomes, error) {
	failing := failingOutcomes{}
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	if len(names) == 0 {
		names = []string{"failures"}
	}
	for _, name := range names {
		_, known := outcome.ExitCodes()[outcome.Outcome(name)]
		switch {
		case name == "failures":
			for each, code := range outcome.ExitCodes() {
				failing[each] = failing[each] || code != 0
			}
		case name == "none" && len(names) == 1: // nothing fails
		case name == "none":
			return nil, errors.New("--fail-on none stands alone")
		case known:
			failing[outcome.Outcome(name)] = true
		default:
			return nil, fmt.Errorf("--fail-on takes outcomes, failures or none, not %s", name)
		}
	}
	return failing, nil
}

// failOnChoices lists the words accepted by --fail-on.
func failOnChoices() []string {
	words := []string{"failures", "none"}
	for _, name := range slices.Sorted(maps.Keys(outcome.ExitCodes())) {
		words = append(words, string(name))
	}
	return words
}

// exitStatus returns the exit status for a result.
func (f failingOutcomes) exitStatus(r record.Result) int {
	switch {
	case !f[r.Outcome]:
		return cli.ExitOK
	case r.ExitCode == 0: // --fail-on lists an outcome that is no failure
		return cli.ExitFailed
	}
	return r.ExitCode
}
