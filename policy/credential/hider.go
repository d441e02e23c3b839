package credential

import (
	"io"
	"net/http"
	"strings"
)

// Hider removes texts that belong to one server from answers. It is safe for concurrent use. A nil Hider removes
// nothing.
type Hider struct{ guard *Guard }

// NewHider returns a Hider for non-empty texts.
func NewHider(texts ...string) *Hider {
	var set Set
	for _, text := range texts {
		set = append(set, Credential{Value: text, Placeholder: strings.Repeat("*", len(text))})
	}
	return &Hider{NewGuard(set)}
}

// CleanHeader removes the texts from the header of an answer.
func (h *Hider) CleanHeader(header http.Header) {
	if h != nil {
		h.guard.CleanHeader(header)
	}
}

// CopyClean copies an answer with asterisks for the texts. It holds back the beginning of a possible text until
// the next bytes arrive: the server may not know the texts, and could find them by timing.
func (h *Hider) CopyClean(to io.Writer, from io.Reader) error {
	if h == nil {
		_, err := io.Copy(to, from)
		return err
	}
	return h.guard.copyClean(to, from, 0)
}
