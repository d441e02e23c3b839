package v4a

// Content is the text of a file, and the one that it started as. It never changes: its methods
// return others.
type Content struct{ text, base string }

// NewContent is a text to start with; that of a file which is not there is empty.
func NewContent(text string) *Content { return &Content{text, text} }

func (c *Content) Text() string { return c.text }

// Changed reports whether the text is another than the one that it started as.
func (c *Content) Changed() bool { return c.text != c.base }

// Rewritten has another text.
func (c *Content) Rewritten(text string) *Content { return &Content{text, c.base} }

// Similarity is how much of the larger text is common to both, in percent.
func (c *Content) Similarity() int {
	larger := max(len(c.base), len(c.text))
	if larger == 0 {
		return 100
	}
	kept := len(c.base)
	for _, r := range differing(c.base, c.text) {
		kept -= r.oldTo - r.oldFrom
	}
	return kept * 100 / larger
}
