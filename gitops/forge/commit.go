package forge

import "time"

// MaxBlob is the greatest content that a forge takes for a file, in bytes.
const MaxBlob = 40 << 20

type Commit struct {
	SHA     string
	Tree    string
	Parents []string
	Message string

	Author, Committer   string // name <mail>
	Authored, Committed time.Time
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
