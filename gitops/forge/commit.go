package forge

import (
	"strings"
	"time"
)

// MaxBlob bounds a file on a forge, in bytes.
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

// The trailers that identify a commit of a run, and its base.
const (
	TrailerRun  = "Agent-CI-Run"
	TrailerBase = "Agent-CI-Base"
)

// Ours reports whether a run made this commit, unmodified, directly on the base it names. Then the
// branch contains nobody else's work.
func (c *Commit) Ours() bool {
	return c.Trailer(TrailerRun) != "" && len(c.Parents) == 1 && c.Trailer(TrailerBase) == c.Parents[0] && !c.Amended()
}

// Amended reports whether the commit was rewritten: git commit --amend keeps the author's date and
// renews the committer's. A run, or a forge for it, writes the same date twice, but maybe different
// people.
func (c *Commit) Amended() bool { return !c.Authored.Equal(c.Committed) }

// By returns the person responsible for the commit's content.
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

// SignedCommit is a commit made by the server.
type SignedCommit struct {
	SHA      string
	Verified bool
	Reason   string // why not, in the server's word
}

// TreeEdit is a new entry for a path. An empty Mode removes it.
type TreeEdit struct {
	Path string // slash-separated, UTF-8
	Mode string // octal, as git writes it
	ID   string // of the blob, or of the commit of a submodule
}

// Relation is the relation of a commit to a base commit in history.
type Relation string

const (
	Identical Relation = "identical"
	Ahead     Relation = "ahead"    // the commit has all commits of the base, and more
	Behind    Relation = "behind"   // the base has all commits of the commit, and more
	Diverged  Relation = "diverged" // both have commits that the other lacks
)
