package credential

import (
	"io"
	"net/http"
	"strings"
)

// Hider keeps texts that were sent to one server out of the answers of many. Several
// goroutines may use it. Nil hides nothing.
type Hider struct{ guard *Guard }

// NewHider makes one for texts, of which none may be empty.
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

// Copy copies an answer and hides the texts in it. Nothing that is held back goes on before
// more comes: who writes the answer may not know the texts.
func (h *Hider) Copy(to io.Writer, from io.Reader) error {
	if h == nil {
		_, err := io.Copy(to, from)
		return err
	}
	return h.guard.copy(to, from, 0)
}
