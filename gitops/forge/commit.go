package forge

import (
	"strings"
	"time"
)

// MaxBlob is the greatest content that a forge takes for a file, in bytes.
const MaxBlob = 40 << 20

// Commit is what a repository tells of a commit, on this machine or on a forge.
type Commit struct {
	SHA     string
	Tree    string
	Parents []string
	Message string

	Author, Committer   string // name <mail>
	Authored, Committed time.Time
}

// The trailers by which a commit of a run is known: its run, and the commit
// that it was made on.
const (
	TrailerRun  = "Agent-CI-Run"
	TrailerBase = "Agent-CI-Base"
)

// Ours says that a run made the commit as it is, on the base that it names: so
// nothing of anybody else lies between the base and this tip, or in it.
func (c *Commit) Ours() bool {
	return c.Trailer(TrailerRun) != "" && len(c.Parents) == 1 && c.Trailer(TrailerBase) == c.Parents[0] && !c.Amended()
}

// Amended says that the commit was made again after it had been made: git commit
// --amend keeps the author's date and takes a new one for the committer. A run, and a
// forge that makes a commit for a run, write one date for both; who the two are may
// differ all the same.
func (c *Commit) Amended() bool { return !c.Authored.Equal(c.Committed) }

// By is who made the commit what it is.
func (c *Commit) By() string {
	if c.Amended() {
		return c.Committer
	}
	return c.Author
}

// Trailer returns the value of a trailer, "" when there is none. Trailers are
// lines "Name: value" of the last paragraph (git-interpret-trailers(1)).
func (c *Commit) Trailer(name string) string {
	message := strings.TrimRight(strings.ReplaceAll(c.Message, "\r\n", "\n"), "\n \t")
	at := strings.LastIndex(message, "\n\n")
	if at < 0 {
		return "" // the subject is no trailer
	}
	value := ""
	for line := range strings.SplitSeq(message[at+2:], "\n") {
		key, rest, ok := strings.Cut(line, ":")
		if ok && strings.EqualFold(strings.TrimSpace(key), name) {
			value = strings.TrimSpace(rest)
		}
	}
	return value
}

// SignedCommit is a commit that the server made.
type SignedCommit struct {
	SHA      string
	Verified bool
	Reason   string // why not, in the server's word
}

// TreeEdit is what becomes of one path of a tree. An empty Mode takes the path
// away.
type TreeEdit struct {
	Path string // slash-separated, UTF-8
	Mode string // octal, as git writes it
	ID   string // of the blob, or of the commit of a submodule
}

// Relation is how one commit stands to another in history.
type Relation string

const (
	Identical Relation = "identical"
	Ahead     Relation = "ahead"    // it has all of the base, and more
	Behind    Relation = "behind"   // the base has all of it, and more
	Diverged  Relation = "diverged" // each has what the other has not
)
