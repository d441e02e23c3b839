package credential

import (
	"net/url"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Spellings of a value that servers in use write are found in answers, with all of what
// follows in its place.
func TestAnswersHaveNoEncodedValue(t *testing.T) {
	const value = `Zq8~pAb+cD/eF1gH!2iJ'3kL==`
	g := NewGuard(Set{{Name: "X", Value: value, Placeholder: NewPlaceholder(value), Parameter: "code"}})
	with := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	query := url.QueryEscape(value)
	for name, spelt := range map[string]string{
		"an address in an address":         url.QueryEscape("/login?code=" + query),
		"small digits twice":               with(query, "%2B", "%252b", "%2F", "%252f", "%21", "%2521", "%27", "%2527", "%3D", "%253d"),
		"Python's quote":                   with(query, "%2F", "/"),
		"encodeURIComponent":               with(query, "%21", "!", "%27", "'"),
		"encodeURIComponent in a link":     with(query, "%21", "!", "%27", "&#39;"),
		"Java, which escapes the tilde":    with(query, "~", "%7E"),
		".NET's JSON":                      with(value, "+", `\u002B`, "'", `\u0027`),
		"JSON of PHP":                      with(value, "/", `\/`),
		".NET's HTML":                      with(value, "+", "&#x2B;", "'", "&#x27;"),
		"Python's HTML":                    with(value, "'", "&#x27;"),
		"PHP's HTML":                       with(value, "'", "&#039;"),
		"Mustache":                         with(value, "/", "&#x2F;", "=", "&#x3D;", "'", "&#39;"),
		"Handlebars":                       with(value, "=", "&#x3D;", "'", "&#x27;"),
		"an address in JSON in JavaScript": with(url.PathEscape(value), "/", `\/`),
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			must.Do(t, g.CopyClean(&out, strings.NewReader("before "+spelt+" after")))
			got := out.String()
			if len(got) != len("before "+spelt+" after") || strings.Contains(got, "eF1gH") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s gives %s", spelt, got)
			}
		})
	}
}
