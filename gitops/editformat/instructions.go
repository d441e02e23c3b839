package editformat

import "embed"

//go:embed instructions/*.md
var texts embed.FS

// Instructions returns the text that tells a model how to write its edits and requests.
func Instructions(f Format) string {
	return read(string(f)) + "\n" + read("asks")
}

func read(name string) string {
	text, err := texts.ReadFile("instructions/" + name + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}
