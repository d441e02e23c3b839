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
	Text   string
}

// Parts is what can be seen of the parts, as one text, each between marks. An issue
// alone needs none, where its text has nothing that looks like one.
func Parts(parts []Part) (string, Removed) {
	var shown []Part
	var removed Removed
	for _, p := range parts {
		text, more := Text(p.Text)
		removed.Add(more)
		if text != "" {
			shown = append(shown, Part{Kind: p.Kind, Author: p.Author, Text: text})
		}
	}
	if len(shown) == 1 && shown[0].Kind == "issue" && !aMark.MatchString(shown[0].Text) {
		return shown[0].Text, removed
	}
	return marked(shown), removed
}

var aMark = regexp.MustCompile(`(?i)</?(?:task|issue|pull_request|question|comment|request|note)[ \t\n]+id[ \t\n]*=`)

// marked is the parts as one text, each between marks that carry its own digest: no
// text can hold the mark that ends it, so none can pass for what somebody else
// wrote.
func marked(parts []Part) string {
	var all []string
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p.Kind + "\x00" + p.Author + "\x00" + p.Text))
		id := hex.EncodeToString(sum[:8])
		all = append(all, fmt.Sprintf("<%s id=%q by=%q>\n%s\n</%s id=%q>", p.Kind, id, p.Author, p.Text, p.Kind, id))
	}
	return strings.Join(all, "\n\n")
}
