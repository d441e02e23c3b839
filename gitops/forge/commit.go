package forge

import (
	"strings"
	"time"
)

// MaxBlob is the largest file on a forge, in bytes.
const MaxBlob = 40 << 20

// Commit describes a commit in a local repository or on a forge.
type Commit struct {
	SHA     string
	Tree    string
	Parents []string
	Message string

	Author, Committer   string // name <mail>
	Authored, Committed time.Time
}

// Trailers that identify the run that made a commit, and its base.
const (
	TrailerRun  = "Agent-CI-Run"
	TrailerBase = "Agent-CI-Base"
)

// MadeByRun reports whether a run made this commit, directly on the base that it names, and nobody amended
// it. Then the branch contains no work of others.
func (c *Commit) MadeByRun() bool {
	isOnNamedBase := len(c.Parents) == 1 && c.Trailer(TrailerBase) == c.Parents[0]
	return c.Trailer(TrailerRun) != "" && isOnNamedBase && !c.Amended()
}

// Amended reports whether the commit was rewritten. git commit --amend keeps the author's date and renews the
// committer's. A run, or a forge for it, writes the same date twice.
func (c *Commit) Amended() bool { return !c.Authored.Equal(c.Committed) }

// ContentAuthor returns the person who wrote the commit's content: the committer of an amended commit, else
// the author.
func (c *Commit) ContentAuthor() string {
	if c.Amended() {
		return c.Committer
	}
	return c.Author
}

// Trailer returns the last value of a trailer, or "" if there is none. Trailers are lines "Name:
// value" in the last paragraph of the message (git-interpret-trailers(1)).
func (c *Commit) Trailer(name string) string {
	message := strings.TrimRight(strings.ReplaceAll(c.Message, "\r\n", "\n"), "\n \t")
	at := strings.LastIndex(message, "\n\n")
	if at < 0 {
		return "" // a message of one paragraph has no trailers
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

// SignedCommit is a commit that the server has made.
type SignedCommit struct {
	SHA      string
	Verified bool
	Reason   string // why it is not verified, as the server calls it
}

// TreeEdit is a new entry for a path. An empty Mode removes it.
type TreeEdit struct {
	Path string // slash-separated, UTF-8
	Mode string // octal, like git's
	ID   string // of the blob, or the commit of a submodule
}

// Relation is the relation between a commit and a base commit in history.
type Relation string

const (
	Identical Relation = "identical"
	Ahead     Relation = "ahead"    // the commit has all commits of the base, and others
	Behind    Relation = "behind"   // the base has all commits of the commit, and others
	Diverged  Relation = "diverged" // each has commits that the other does not have
)
