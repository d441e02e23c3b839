package tools

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Fence returns untrusted text between two tags, for the model. The tags contain the text's digest, so that the text
// cannot contain its own closing tag.
func Fence(kind, source, text string) string {
	id := fmt.Sprintf("%.8x", sha256.Sum256([]byte(text)))
	return fmt.Sprintf("<%s id=%q source=%q>\n%s\n</%s id=%q>", kind, id, source, strings.TrimRight(text, "\n"), kind, id)
}
