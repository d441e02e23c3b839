package clean

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Part is one piece of text with who wrote it.
type Part struct {
	Kind   string // issue, pull_request, question, comment, request, note
	Author string
	Text   string // cleaned
}

// aMark is what a mark looks like.
var aMark = regexp.MustCompile(`(?i)</?(?:task|issue|pull_request|question|comment|request|note)[ \t\n]+id[ \t\n]*=`)

// HoldsMark says whether a text has what could be taken for a mark: it has to
// stand between real ones then.
func HoldsMark(text string) bool { return aMark.MatchString(text) }

// Marked is the parts as one text, each between marks that carry its own
// digest: no text can hold the mark that ends it, so none can pass for what
// somebody else wrote.
func Marked(parts []Part) string {
	var all []string
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p.Kind + "\x00" + p.Author + "\x00" + p.Text))
		id := hex.EncodeToString(sum[:8])
		all = append(all, fmt.Sprintf("<%s id=%q by=%q>\n%s\n</%s id=%q>", p.Kind, id, p.Author, p.Text, p.Kind, id))
	}
	return strings.Join(all, "\n\n")
}
