package clean

import (
	"cmp"
	"html"
	"slices"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// imageMark matches an image in Markdown, or GitHub's HTML for a resized one.
var imageMark = lazyregexp.New(`!\[[^\]\n]*\]\([ \t]*<?([^\s<>()"']+)>?[^)\n]*\)|(?i:<img[ \t\n][^<>]*?\bsrc[ \t]*=[ \t]*["']?([^\s"'<>]+))`)

// ImageAddresses returns the addresses of the images in a cleaned text, without duplicates, in their order.
func ImageAddresses(text string) (all []string) {
	for _, m := range imageMark().FindAllStringSubmatch(text, -1) {
		if address := cmp.Or(m[1], html.UnescapeString(m[2])); !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}
