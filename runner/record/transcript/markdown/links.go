package markdown

// Link returns a link to an address that agent-ci made, or only the name if there is no address. name is
// Markdown.
func Link(name, address string) string {
	if address == "" {
		return name
	}
	return "[" + name + "](" + address + ")"
}
