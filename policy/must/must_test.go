package must_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// reporter is a test that keeps its errors.
type reporter struct {
	*testing.T
	errors string
}

func (r *reporter) Errorf(format string, words ...any) { r.errors += fmt.Sprintf(format, words...) }

func TestSameReportsDifferences(t *testing.T) {
	type named struct {
		Name   string
		hidden []string
	}
	now := time.Now()
	for name, test := range map[string]struct {
		want, got any
		diff      string
	}{
		"line":           {"a", "b", "-\"a\"\n+\"b\"\n"},
		"lines":          {"a\nb\n", "a\nc\n", " a\n-b\n+c\n"},
		"list":           {[]string{"a", "b"}, []string{"a", "c"}, " []string{\"a\",\n-\"b\"}\n+\"c\"}\n"},
		"hidden field":   {named{"a", []string{"b"}}, named{"a", []string{"c"}}, "-    hidden: {\"b\"},\n+    hidden: {\"c\"},\n"},
		"text in a list": {[]string{"a\nb"}, []string{"a\nc"}, "-b\"}\n+c\"}\n"},
		"nil and empty":  {[]string(nil), []string{}, "-[]string(nil)\n+[]string{}\n"},
		"other types":    {1, int64(1), "-int(1)\n+int64(1)\n"},
		"printed alike":  {now, now.Round(0), "both are written as time.Date("},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reporter{T: t}
			must.Same(r, test.want, test.want)
			must.Same(t, "", r.errors)
			must.Same(r, test.want, test.got, "the case")
			must.Contain(t, r.errors, "the case\nwant and got differ:\n", test.diff)
		})
	}
}
