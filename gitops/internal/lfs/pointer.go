// Package lfs replaces the filter of git-lfs. It converts a file to a pointer and stores the
// content. It converts a pointer to the stored content
// (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md). It starts no program and uses no
// network.
package lfs

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Pointer is the text that a commit contains in place of a file's content.
type Pointer struct {
	OID  string `json:"oid"` // SHA-256 in hex
	Size int64  `json:"size"`
}

// Object is the content of a Git LFS file.
type Object struct {
	Pointer
	Open func(ctx context.Context) (*os.File, error) // opens the content; nil if it is not stored here
}

const version = "https://git-lfs.github.com/spec/v1"

// versions lists the version lines that git-lfs accepts.
var versions = map[string]bool{version: true, "https://hawser.github.com/spec/v1": true, "http://git-media.io/v/2": true}

// MaxPointer is a size in bytes that every pointer is below.
const MaxPointer = 1024

var isOID = lazyregexp.New(`^[0-9a-f]{64}$`)

func (p Pointer) String() string {
	return fmt.Sprintf("version %s\noid sha256:%s\nsize %d\n", version, p.OID, p.Size)
}

// Parse parses a pointer. plain is false for a pointer with extensions: its stored content differs
// from the file's content. ok is false for a text that is no pointer.
func Parse(text []byte) (p Pointer, plain, ok bool) {
	if len(text) >= MaxPointer {
		return Pointer{}, false, false
	}
	plain = true
	for i, line := range strings.Split(strings.TrimRight(string(text), "\r\n"), "\n") {
		key, value, spaced := strings.Cut(strings.TrimSuffix(line, "\r"), " ")
		isVersion := key == "version" && versions[value]
		switch {
		case !spaced || i == 0 && !isVersion:
			return Pointer{}, false, false
		case i == 0: // the version line
		case key == "oid":
			p.OID = strings.TrimPrefix(value, "sha256:")
		case key == "size":
			size, err := strconv.ParseInt(value, 10, 64)
			if err != nil || size < 0 {
				return Pointer{}, false, false
			}
			p.Size = size
		case strings.HasPrefix(key, "ext-"):
			plain = false
		default:
			return Pointer{}, false, false
		}
	}
	return p, plain, isOID().MatchString(p.OID)
}
