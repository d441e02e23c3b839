package markdown

// Link is a link to an address that agent-ci made. Name is Markdown.
type Link struct {
	Name, Address string
}

// String returns the link as Markdown, or only its name if there is no address.
func (l Link) String() string {
	if l.Address == "" {
		return l.Name
	}
	return "[" + l.Name + "](" + l.Address + ")"
}
