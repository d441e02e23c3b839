package v4a

// Content is the current text of a file together with its original. It is immutable.
type Content struct{ text, base string }

// NewContent returns the content of an unchanged file. A missing file has the empty text.
func NewContent(text string) *Content { return &Content{text, text} }

func (c *Content) Text() string { return c.text }

// Changed reports whether the text differs from the original.
func (c *Content) Changed() bool { return c.text != c.base }

// WithText returns content with the same original and another current text.
func (c *Content) WithText(text string) *Content { return &Content{text, c.base} }
