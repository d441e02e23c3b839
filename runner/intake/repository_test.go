package intake_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/intake"
)

func TestNameInURL(t *testing.T) {
	const server = "https://github.com"
	for _, c := range []struct{ origin, server, want string }{
		{"https://github.com/octo/widgets.git", server, "octo/widgets"},
		{"https://github.com/octo/widgets", server, "octo/widgets"},
		{"https://github.com/octo/widgets/", server, "octo/widgets"},
		{"git@github.com:octo/widgets.git", server, "octo/widgets"},
		{"ssh://git@github.com/octo/widgets.git", server, "octo/widgets"},
		{"ssh://git@ghe.example.com:2222/octo/widgets.git", "https://ghe.example.com", "octo/widgets"},
		{"https://gitlab.example.com/octo/widgets.git", server, ""},
		{"https://github.com.evil.example/octo/widgets.git", server, ""},
		{"https://github.com/octo", server, ""},
		{"https://github.com/octo/widgets/tree/main", server, ""},
		{"/srv/git/github.com/octo/widgets.git", server, ""},
		{"../widgets", server, ""},
		{"", server, ""},
		{"https://127.0.0.1:4000/octo/widgets.git", "https://127.0.0.1:4001", ""},
	} {
		if got := intake.NameInURL(c.origin, c.server); got != c.want {
			t.Errorf("NameInURL(%q, %q) = %q, want %q", c.origin, c.server, got, c.want)
		}
	}
}
