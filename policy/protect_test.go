package policy

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestProtected(t *testing.T) {
	patterns := []string{".github/**", "CODEOWNERS", "/deploy/*.yml"}
	paths := []string{
		".github/workflows/ci.yml", ".GitHub/x", "github/x", "CODEOWNERS", "docs/CODEOWNERS", "codeowners.md",
		"deploy/prod.yml", "deploy/eu/prod.yml", "src/deploy/prod.yml",
	}
	var got []string
	for _, path := range paths {
		protected := must.Get(Protected(patterns, path))(t)
		if protected {
			got = append(got, path)
		}
	}
	want := []string{".github/workflows/ci.yml", ".GitHub/x", "CODEOWNERS", "docs/CODEOWNERS", "deploy/prod.yml"}
	must.Same(t, want, got)
	must.Fail(t, "", must.Err(Protected([]string{"a/[b"}, "a/b")), "a pattern that cannot be read gives no error")
	must.Fail(t, "alternatives", must.Err(Protected([]string{strings.Repeat("{a,b}", 40)}, "a/b")), "a pattern with too many braces")
}
