package onboard

import (
	"regexp"
	"strings"
)

// Build describes a program's build.
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

// Pinned pins a workflow's uses of the action to this program's release or commit. An unknown one
// is left to people.
func (b Build) Pinned(workflow []byte) []byte {
	uses := regexp.MustCompile(`(?m)^( *)- uses: ` + action + `@v0\b.*$`)
	return uses.ReplaceAllFunc(workflow, func(line []byte) []byte {
		blanks := string(line[:strings.IndexByte(string(line), '-')])
		steps := []string{"- uses: " + action + "@" + b.ref() + b.remark()}
		if !b.IsRelease() {
			steps = append([]string{"- uses: " + setupGo, "  with: {go-version: stable, cache: false}"}, steps...)
		}
		return []byte(blanks + strings.Join(steps, "\n"+blanks))
	})
}

// isKnown says whether nothing is left to be filled in.
func (b Build) isKnown() bool { return b.ref() != toFillIn }

// whyUnknown explains a commit to fill in.
func (b Build) whyUnknown() string {
	why := "this program does not know which commit it was built from"
	if b.Modified {
		why = "this program was built from a changed tree"
	}
	return "replace " + toFillIn + " in the workflow by the commit of agent-ci that you have read, with all 40 digits: " + why
}

// IsRelease reports whether the program is of a release, and not of any commit.
func (b Build) IsRelease() bool { return regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(b.Version) }

func (b Build) ref() string {
	switch {
	case b.IsRelease():
		return b.Version
	case b.Modified || !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(b.Commit):
		return toFillIn
	}
	return b.Commit
}

func (b Build) remark() string {
	switch {
	case b.IsRelease():
		return " # pin the commit of the release that you read"
	case b.isKnown():
		return " # the commit that init was built from; there is no release yet"
	}
	return " # fill in the commit of agent-ci that you have read"
}
