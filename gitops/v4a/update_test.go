package v4a_test

import (
	"context"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
)

// envelope wraps sections.
func envelope(sections string) string {
	return "*** Begin Patch\n" + sections + "*** End Patch\n"
}

// parsed reads a patch that is one.
func parsed(t rapid.TB, sections string) v4a.Patch {
	t.Helper()
	patch, err := v4a.Parse(envelope(sections))
	must.Do(t, err, sections)
	return patch
}

// text applies the sections of a patch, which all update one file, to its text.
func text(before string, patch v4a.Patch) (string, error) {
	for i := range patch {
		var err error
		if before, _, err = patch[i].Update(context.Background(), before); err != nil {
			return "", err
		}
	}
	return before, nil
}

// updated applies hunks to the text of a file.
func updated(t rapid.TB, before, hunks string) (string, error) {
	t.Helper()
	return text(before, parsed(t, "*** Update File: f\n"+hunks))
}

func TestUpdate(t *testing.T) {
	tests := map[string]struct{ text, hunks, want string }{
		"one line":                       {"a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
		"two hunks":                      {"a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n", "A\nb\nc\nD\n"},
		"first hunk without @@":          {"a\nb\n", "-a\n+A\n", "A\nb\n"},
		"empty line is empty context":    {"a\n\nb\n", "@@\n a\n\n-b\n+B\n", "a\n\nB\n"},
		"empty lines between hunks":      {"a\nb\nc\n", "@@\n-a\n+A\n\n@@\n-c\n+C\n", "A\nb\nC\n"},
		"empty line at the end of file":  {"a\nb\n", "@@\n-b\n+B\n\n", "a\nB\n"},
		"@@ with blank and nothing":      {"a\n", "@@ \n-a\n+A\n", "A\n"},
		"no final newline stays":         {"a\nb", "@@\n-a\n+A\n b\n", "A\nb"},
		"replaces unterminated line":     {"a\nb", "@@\n-b\n+B\n", "a\nB\n"},
		"removes unterminated line":      {"a\nb", "@@\n a\n-b\n", "a\n"},
		"removes all":                    {"a\nb\n", "@@\n-a\n-b\n", ""},
		"into an empty file":             {"", "@@\n+a\n", "a\n"},
		"pure addition at the end":       {"a\nb\n", "@@\n+c\n", "a\nb\nc\n"},
		"pure addition, unterminated":    {"a\nb", "@@\n+c\n", "a\nb\nc\n"},
		"pure addition below a context":  {"a\nb\nc\n", "@@ a\n+x\n", "a\nx\nb\nc\n"},
		"pure addition below the last":   {"a\nb", "@@ b\n+x\n", "a\nb\nx\n"},
		"pure addition at end of file":   {"a\nb\n", "@@ a\n+x\n*** End of File\n", "a\nb\nx\n"},
		"addition, then a change above":  {"a\nb\n", "@@\n+c\n@@\n-a\n+A\n", "A\nb\nc\n"},
		"keeps blank lines at the end":   {"a\n\n\n", "@@\n-a\n+A\n", "A\n\n\n"},
		"context narrows":                {"f\nx\ng\nx\n", "@@ g\n-x\n+y\n", "f\nx\ng\ny\n"},
		"contexts stack":                 {"class A\ndef f\nx\nclass B\ndef f\nx\n", "@@ class B\n@@ def f\n-x\n+y\n", "class A\ndef f\nx\nclass B\ndef f\ny\n"},
		"context is looked for loosely":  {"  def f:\nx\n", "@@ def f:\n-x\n+y\n", "  def f:\ny\n"},
		"end of file picks the last":     {"x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"},
		"cursor moves on":                {"x\nx\n", "@@\n-x\n+1\n@@\n-x\n+2\n", "1\n2\n"},
		"exact before loose":             {"a \na\n", "@@\n-a\n+b\n", "a \nb\n"},
		"blanks at the end":              {"a \t\nb\n", "@@\n a\n-b\n+B\n", "a \t\nB\n"},
		"blanks at both ends":            {"\t a\nb\n", "@@\n a\n-b\n+B\n", "\t a\nB\n"},
		"dashes":                         {"a – b − c\nx\n", "@@\n a - b - c\n-x\n+y\n", "a – b − c\ny\n"},
		"quotes":                         {"‘a’ “b”\nx\n", "@@\n 'a' \"b\"\n-x\n+y\n", "‘a’ “b”\ny\n"},
		"spaces":                         {"a\u00a0b\u3000c\nx\n", "@@\n a b c\n-x\n+y\n", "a\u00a0b\u3000c\ny\n"},
		"CRLF":                           {"a\r\nb\r\n", "@@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n"},
		"CR":                             {"a\rb\rc\r", "@@\n a\n-b\n+B\n c\n", "a\rB\rc\r"},
		"mixed endings":                  {"a\nb\r\nc\rd\n", "@@\n-a\n+A\n b\n c\n-d\n+D\n", "A\nb\r\nc\rD\n"},
		"replaces CRLF between LF":       {"one\ntwo\nthree\r\nfour\n", "@@\n two\n-three\n+THREE\n four\n", "one\ntwo\nTHREE\r\nfour\n"},
		"replaces LF between CRLF":       {"one\r\ntwo\nthree\r\n", "@@\n-two\n+TWO\n", "one\r\nTWO\nthree\r\n"},
		"each keeps its own":             {"a\nb\r\nc\nd\r\n", "@@\n-a\n-b\n-c\n+A\n+B\n+C\n d\n", "A\nB\r\nC\nd\r\n"},
		"added first, each its own":      {"a\nb\r\nc\n", "@@\n+A\n+B\n-a\n-b\n c\n", "A\nB\r\nc\n"},
		"in turn, each its own":          {"a\nb\r\nc\n", "@@\n-a\n+A\n-b\n+B\n c\n", "A\nB\r\nc\n"},
		"two for one":                    {"a\nb\r\nc\n", "@@\n a\n-b\n+B\n+BB\n c\n", "a\nB\r\nBB\r\nc\n"},
		"one for two":                    {"a\nb\r\nc\nd\n", "@@\n a\n-b\n-c\n+B\n d\n", "a\nB\r\nd\n"},
		"two changes, each its own":      {"a\r\nb\nc\r\n", "@@\n-a\n+A\n b\n-c\n+C\n", "A\r\nb\nC\r\n"},
		"added in mixed endings":         {"a\nb\r\nc\n", "@@\n b\n+x\n c\n", "a\nb\r\nx\nc\n"},
		"replaces unterminated, CRLF":    {"a\r\nb", "@@\n-b\n+B\n", "a\r\nB\r\n"},
		"CRLF of the patch is not kept":  {"a\nb\n", "@@\r\n-a\r\n+A\r\n", "A\nb\n"},
		"byte order mark stays":          {"\ufeffa\nb\n", "@@\n-a\n+A\n b\n", "\ufeffA\nb\n"},
		"byte order mark spelled":        {"\ufeffa\nb\n", "@@\n \ufeffa\n-b\n+B\n", "\ufeffa\nB\n"},
		"byte order mark replaced":       {"\ufeffa\nb\n", "@@\n-\ufeffa\n+\ufeffA\n", "\ufeffA\nb\n"},
		"byte order mark removed":        {"\ufeffa\nb\n", "@@\n-\ufeffa\n+A\n", "A\nb\n"},
		"bytes that are not text":        {"\xff\x00\nb\n", "@@\n-b\n+B\n", "\xff\x00\nB\n"},
		"header with a blank is context": {"*** Add File: x\nb\n", "@@\n *** Add File: x\n-b\n+B\n", "*** Add File: x\nB\n"},
		"empty lines after end of file":  {"a\n", "@@\n-a\n+A\n*** End of File\n\n", "A\n"},
		"empty last context not there":   {"a\n", "@@\n a\n\n+x\n", "a\n\nx\n"},
		"empty last removal not there":   {"a\n", "@@\n-a\n+A\n-\n", "A\n"},
		"empty last lines not there":     {"a\n", "@@\n-a\n-\n+b\n+\n", "b\n"},
		"one of two empty lines there":   {"a\n\n", "@@\n a\n\n-\n", "a\n"},
		"only context, empty, not there": {"a\n", "@@\n\n+x\n", "\nx\na\n"},
		"additions at the end, in order": {"a\nb\n", "@@\n+tail\n@@\n b\n+after b\n", "a\nb\ntail\nafter b\n"},
		"addition, then the last line":   {"a\nb", "@@\n+tail\n@@\n a\n-b\n+B\n", "a\nB\ntail\n"},
		"byte order mark in a context":   {"\ufeffa\nb\n", "@@ \ufeffa\n-b\n+B\n", "\ufeffa\nB\n"},
		"byte order mark not in one":     {"\ufeffa\nb\n", "@@ a\n-b\n+B\n", "\ufeffa\nB\n"},
		"blanks after end of file":       {"a\n", "@@\n-a\n+A\n*** End of File\n  \n\t\n", "A\n"},
		"end of file above all hunks":    {"a\nb\n", "*** End of File\n@@\n-a\n+A\n", "A\nb\n"},
		"nothing changes":                {"a\nb\n", "@@\n a\n b\n", "a\nb\n"},
		"line numbers":                   {"a\nb\n", "@@ -1,2 +1,2 @@\n-b\n+C\n", "a\nC\n"},
		"line numbers and a heading":     {"a\nb\n", "@@ -1,2 +1,2 @@ func a\n-b\n+C\n", "a\nC\n"},
		"line numbers, empty file":       {"", "@@ -0,0 +1 @@\n+C\n", "C\n"},
		"line numbers of the file":       {"x\n@@\n-1 +1\nx\n", "@@ -1 +1\n-x\n+y\n", "x\n@@\n-1 +1\ny\n"},
		"parent above":                   {"A\nf\nx\ng\nx\n", "@@ A\n f\n-x\n+1\n@@ A\n g\n-x\n+2\n", "A\nf\n1\ng\n2\n"},
		"parent above, child below":      {"A\nf\nx\ng\nx\n", "@@ A\n f\n-x\n+1\n@@ A\n@@ g\n-x\n+2\n", "A\nf\n1\ng\n2\n"},
		"parent above, in two places":    {"A\ny\nA\nz\nx\n", "@@\n-z\n+Z\n@@ A\n-x\n+X\n", "A\ny\nA\nZ\nX\n"},
		"line numbers say which":         {"a\nb\na\n", "@@ -3 +3 @@\n-a\n+A\n", "a\nb\nA\n"},
		"the hunk below says which":      {"a\nb\na\n", "@@\n-a\n+A\n@@\n-b\n+B\n", "A\nB\na\n"},
		"parents above":                  {"A\nf\nx\ny\n", "@@ A\n@@ f\n-x\n+1\n@@ A\n@@ f\n-y\n+2\n", "A\nf\n1\n2\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := must.Get(updated(t, tt.text, tt.hunks))(t)
			must.Same(t, tt.want, got)
		})
	}
}

func TestUpdateRefusesMismatches(t *testing.T) {
	tests := map[string]struct{ text, hunks string }{
		"parent above, two places":      {"A\nx\ny\nx\nx\n", "@@\n-y\n+Y\n@@ A\n-x\n+X\n"},
		"parent above, additions alone": {"A\nx\ny\n", "@@\n-y\n+Y\n@@ A\n+X\n"},
		"parent above, outer one below": {"A\nB\ny\nx\n", "@@\n-y\n+Y\n@@ B\n@@ A\n-x\n+X\n"},
		"old lines longer than file":    {"a\n", "@@\n a\n b\n-c\n"},
		"folding does not touch bytes":  {"\xff–\nb\n", "@@\n \xff-\n-b\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := updated(t, tt.text, tt.hunks)
			if _, ok := err.(*v4a.MatchError); !ok {
				t.Errorf("error = %v, want a MatchError", err)
			}
		})
	}
}
