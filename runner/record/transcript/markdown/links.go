package markdown

// Link is a link of our own: an address that was made and not found, and what it is
// called, which is Markdown already.
type Link struct {
	Name, Address string
}

// String is the link as Markdown; without an address its name alone.
func (l Link) String() string {
	if l.Address == "" {
		return l.Name
	}
	return "[" + l.Name + "](" + l.Address + ")"
}
