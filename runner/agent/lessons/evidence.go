package lessons

import (
	"fmt"
	"io/fs"
	"strings"
)

// Evidence supports a lesson. Exactly one of Check, Run and Path is set.
type Evidence struct {
	Check    string // name
	Run      string // id
	Path     string // file, relative to the repository's root
	PinnedTo string // hex ID of a commit or blob with Path, or ""
}

const (
	checkPrefix = "check:"
	runPrefix   = "run:"
)

// isObjectID reports whether a text can be the full or shortened ID of a commit or blob.
func isObjectID(s string) bool {
	return len(s) >= 7 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// ParseEvidence parses check:NAME, run:ID, PATH@SHA or PATH. SHA is the ID of a commit or blob.
func ParseEvidence(s string) (Evidence, error) {
	if err := checkLine(s, maxProof); err != nil {
		return Evidence{}, err
	}
	if name, isCheck := strings.CutPrefix(s, checkPrefix); isCheck {
		return Evidence{Check: name}, checkLine(name, maxProof)
	}
	if id, isRun := strings.CutPrefix(s, runPrefix); isRun {
		return Evidence{Run: id}, checkLine(id, maxProof)
	}
	e := Evidence{Path: s}
	if at := strings.LastIndexByte(s, '@'); at >= 0 && isObjectID(s[at+1:]) {
		e.Path, e.PinnedTo = s[:at], s[at+1:]
	}
	if !fs.ValidPath(e.Path) || e.Path == "." || strings.Contains(e.Path, `\`) {
		return e, fmt.Errorf("must be path@sha with a path from the repository's root, check:NAME or run:ID")
	}
	return e, nil
}

// String returns the evidence in the form that ParseEvidence parses.
func (e Evidence) String() string {
	switch {
	case e.Check != "":
		return checkPrefix + e.Check
	case e.Run != "":
		return runPrefix + e.Run
	case e.PinnedTo != "":
		return e.Path + "@" + e.PinnedTo
	}
	return e.Path
}

// checkEvidence returns an error unless s is check:NAME, run:ID or PATH@SHA.
func checkEvidence(s string) error {
	e, err := ParseEvidence(s)
	if err != nil {
		return err
	}
	if e.Path != "" && e.PinnedTo == "" {
		return fmt.Errorf("must name a commit or blob behind the path: path@sha")
	}
	return nil
}

// addsOnlyPin reports whether pinned is the evidence proposed, possibly with @SHA appended.
func addsOnlyPin(pinned, proposed string) bool {
	id, hasPin := strings.CutPrefix(pinned, proposed+"@")
	return pinned == proposed || hasPin && isObjectID(id)
}
