package tools

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Fence returns foreign text between two tags that contain its digest. So a text cannot contain its own closing tag.
func Fence(kind, source, text string) string {
	id := fmt.Sprintf("%.8x", sha256.Sum256([]byte(text)))
	return fmt.Sprintf("<%s id=%q source=%q>\n%s\n</%s id=%q>", kind, id, source, strings.TrimRight(text, "\n"), kind, id)
}
