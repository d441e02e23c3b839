package publish

import (
	"path"
	"slices"
	"strings"
)

// templateFolders are where GitHub looks for a pull request template, in its
// order
// (https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests).
var templateFolders = []string{".github", "", "docs"}

var templateNames = []string{"pull_request_template.md", "pull_request_template.txt", "pull_request_template"}

// maxTemplate is the most of a template that is read, in bytes; the body shows
// less.
const maxTemplate = 64 << 10

// pullTemplate is the template of the base commit that GitHub would fill a new
// pull request with; "" when there is none. One that cannot be read is a warning.
func (m Means) pullTemplate() string {
	checkout := m.Workspace.Checkout()
	for _, folder := range templateFolders {
		names, err := checkout.BaseFiles(folder)
		if err != nil {
			m.Record.Warn("pull_request_template", "The pull request template could not be looked for: %v", err)
			return ""
		}
		at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(templateNames, strings.ToLower(name)) })
		if at < 0 {
			continue
		}
		text, err := checkout.ReadBase(path.Join(folder, names[at]), maxTemplate)
		if err != nil {
			m.Record.Warn("pull_request_template", "The pull request template was left out: %v", err)
		}
		return string(text)
	}
	return ""
}
