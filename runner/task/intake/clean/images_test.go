package clean_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
)

func TestFindsImages(t *testing.T) {
	const a, b = "https://github.com/user-attachments/assets/a", "https://github.com/user-attachments/assets/b"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"none":         {"See [a](" + a + ") and " + b, nil},
		"Markdown":     {"x ![Image](" + a + ") y\n![](<" + b + ">)", []string{a, b}},
		"with a title": {`![A b](` + a + ` "A (b)")`, []string{a}},
		"HTML":         {`<img width="10" alt="Image" src="` + a + `" />` + "\n<IMG\nSRC=" + b + ">", []string{a, b}},
		"escaped HTML": {`<img src="` + a + `?x=1&amp;y=2">`, []string{a + "?x=1&y=2"}},
		"twice":        {"![](" + a + ")![](" + a + ")", []string{a}},
		"relative":     {"![](shot.png)", []string{"shot.png"}},
		"half":         {"![](" + a, nil},
		"another tag":  {`<imgx src="` + a + `"><a src="` + a + `">`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			must.Same(t, c.want, clean.ImageAddresses(c.text))
		})
	}
}
