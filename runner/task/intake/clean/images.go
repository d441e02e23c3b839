package clean

import (
	"cmp"
	"html"
	"regexp"
	"slices"
	"sync"
)

// imageMark is an image in Markdown, or the HTML that GitHub writes for one
// whose size was changed.
var imageMark = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`!\[[^\]\n]*\]\([ \t]*<?([^\s<>()"']+)>?[^)\n]*\)|(?i:<img[ \t\n][^<>]*?\bsrc[ \t]*=[ \t]*["']?([^\s"'<>]+))`)
})

// Images are the addresses of the images in a cleaned text, each once, in their
// order.
func Images(text string) []string {
	var all []string
	for _, m := range imageMark().FindAllStringSubmatch(text, -1) {
		if address := cmp.Or(m[1], html.UnescapeString(m[2])); !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}
