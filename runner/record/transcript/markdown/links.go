package markdown

// Link is a link of our own with a generated address. Its name is Markdown.
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
