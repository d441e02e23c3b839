package onboard

import (
	"regexp"
	"strings"
)

// Build identifies the build of this program.
type Build struct {
	Version  string // v1.2.3 of a release; else anything
	Commit   string // all of it; empty for unknown
	Modified bool   // the tree was not the commit's
}

const (
	action = "agent-ci/agent-ci"
	// toFillIn stands for an unknown commit, for people to fill in.
	toFillIn = "COMMIT"
	// setupGo installs Go, for building an unreleased commit of the action.
	setupGo = "actions/setup-go@b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0"
)

// PinAction pins each use of the action in a workflow to the release or commit of this program. If these
// are unknown, it inserts a placeholder for the user.
func (b Build) PinAction(workflow []byte) []byte {
	uses := regexp.MustCompile(`(?m)^( *)- uses: ` + action + `@v0\b.*$`)
	return uses.ReplaceAllFunc(workflow, func(line []byte) []byte {
		indent, _, _ := strings.Cut(string(line), "-")
		steps := []string{"- uses: " + action + "@" + b.pin()}
		if !b.IsRelease() {
			steps = append([]string{"- uses: " + setupGo, "  with: {go-version: stable, cache: false}"}, steps...)
		}
		return []byte(indent + strings.Join(steps, "\n"+indent))
	})
}

// isKnown reports whether the release or commit of this program is known.
func (b Build) isKnown() bool { return !strings.HasPrefix(b.pin(), toFillIn) }

// whyUnknown tells the user to replace the placeholder, and why agent-ci could not.
func (b Build) whyUnknown() string {
	why := "this program does not know which commit it was built from"
	if b.Modified {
		why = "this program was built from a changed tree"
	}
	return "replace " + toFillIn + " in the workflow by the commit of agent-ci that you have read, with all 40 digits: " + why
}

// IsRelease reports whether the program is of a release, and not of any commit.
func (b Build) IsRelease() bool { return regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(b.Version) }

// pin returns the release or commit of the action to use in workflows, or toFillIn if it is unknown, and a YAML
// comment about it.
func (b Build) pin() string {
	switch {
	case b.IsRelease():
		return b.Version + " # pin the commit of the release that you read"
	case b.Modified || !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(b.Commit):
		return toFillIn + " # fill in the commit of agent-ci that you have read"
	}
	return b.Commit + " # the commit that init was built from; there is no release yet"
}
