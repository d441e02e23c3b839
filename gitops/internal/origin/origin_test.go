package origin

import (
	"net/url"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://api.github.com/x", "https://API.GitHub.com:443/y?z", true},
		{"http://localhost/", "http://localhost:80/", true},
		{"https://[::1]/", "https://[::1]:443/", true},
		{"https://api.github.com/", "http://api.github.com/", false},
		{"https://api.github.com/", "https://api.github.com:8443/", false},
		{"https://api.github.com/", "https://github.com/", false},
		{"https://api.github.com/", "https://api.github.com.evil.example/", false},
	} {
		a := must.Get(url.Parse(c.a))(t)
		b := must.Get(url.Parse(c.b))(t)
		must.Same(t, c.same, Of(a) == Of(b), c.a, c.b, "are of one origin")
	}
}
