package credential

import (
	"io"
	"net/http"
	"strings"
)

// Hider hides texts for one server in the answers of many. It is safe for concurrent use. A nil
// Hider hides nothing.
type Hider struct{ guard *Guard }

// NewHider returns a Hider for non-empty texts.
func NewHider(texts ...string) *Hider {
	var set Set
	for _, text := range texts {
		set = append(set, Credential{Value: text, Placeholder: strings.Repeat("*", len(text))})
	}
	return &Hider{NewGuard(set)}
}

// Header hides the texts in the header of an answer.
func (h *Hider) Header(header http.Header) {
	if h != nil {
		h.guard.Header(header)
	}
}

// Copy copies an answer without the texts. It never forwards held back bytes early, since the
// server may not know the texts and could find them by timing.
func (h *Hider) Copy(to io.Writer, from io.Reader) error {
	if h == nil {
		_, err := io.Copy(to, from)
		return err
	}
	return h.guard.copy(to, from, 0)
}
