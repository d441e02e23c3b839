package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Fence puts foreign text between marks with its digest, so no text can contain its end mark.
func Fence(kind, source, text string) string {
	digest := sha256.Sum256([]byte(text))
	id := hex.EncodeToString(digest[:8])
	return fmt.Sprintf("<%s id=%q source=%q>\n%s\n</%s id=%q>", kind, id, source, strings.TrimRight(text, "\n"), kind, id)
}
