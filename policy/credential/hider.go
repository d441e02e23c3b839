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

// Copy copies an answer and hides the texts in it. Who writes the answer may not know
// them, and is not to find them out piece by piece from what is held back: while more is
// to come that is as many bytes as the longest spelling has but one, whatever they are.
func (h *Hider) Copy(to io.Writer, from io.Reader) error {
	if h == nil {
		_, err := io.Copy(to, from)
		return err
	}
	buffer := h.guard.buffers.Get().(*[]byte)
	defer h.guard.buffers.Put(buffer)
	held := 0
	for {
		n, err := from.Read((*buffer)[held:])
		all, whole := (*buffer)[:held+n], err == io.EOF
		h.guard.values.replace(all, whole)
		ready := len(all)
		if !whole {
			ready = max(0, len(all)-h.guard.values.longest+1)
		}
		if ready > 0 {
			if _, err := to.Write(all[:ready]); err != nil {
				return err
			}
		}
		held = copy(*buffer, all[ready:])
		if whole {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
