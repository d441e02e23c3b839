package v4a

// Content is the text of a file with its original. It is immutable.
type Content struct{ text, base string }

// NewContent returns an original text. A missing file has the empty text.
func NewContent(text string) *Content { return &Content{text, text} }

func (c *Content) Text() string { return c.text }

// Changed reports whether the text differs from the original.
func (c *Content) Changed() bool { return c.text != c.base }

// WithText has another text.
func (c *Content) WithText(text string) *Content { return &Content{text, c.base} }

// Similarity is how much of the larger text is common to both, in percent.
func (c *Content) Similarity() int {
	larger := max(len(c.base), len(c.text))
	if larger == 0 {
		return 100
	}
	kept := len(c.base)
	for _, r := range differences(c.base, c.text) {
		kept -= r.oldTo - r.oldFrom
	}
	return kept * 100 / larger
}
