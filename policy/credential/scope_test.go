package credential

import (
	"strings"
	"testing"
)

func TestParseScope(t *testing.T) {
	for _, test := range []struct{ text, want, path, wrong string }{
		{"npm.example.com", "npm.example.com", "", ""},
		{"npm.example.com/", "npm.example.com", "", ""},
		{"npm.example.com:8443", "npm.example.com:8443", "", ""},
		{"git.example.com/team/", "git.example.com/team", "/team", ""},
		{"git.example.com:8443/team/a.b_c-d~e@f", "git.example.com:8443/team/a.b_c-d~e@f", "/team/a.b_c-d~e@f", ""},
		{"[2606:2800:220:1::1]:443/x", "[2606:2800:220:1::1]:443/x", "/x", ""},
		{"*.example.com", "", "", "wildcard"},
		{"*.example.com/x", "", "", "wildcard"},
		{"https://example.com", "", "", "without https://"},
		{"example.com?a=b", "", "", "without scheme"},
		{"example.com/a?b", "", "", "query"},
		{"example.com/a#b", "", "", "query or a fragment"},
		{"example.com/a%2fb", "", "", "different ways"},
		{"example.com/a;b", "", "", "different ways"},
		{`example.com/a\b`, "", "", "different ways"},
		{"example.com/a b", "", "", "printable ASCII"},
		{"example.com/ä", "", "", "printable ASCII"},
		{"example.com//a", "", "", "//"},
		{"example.com/a//", "", "", "//"},
		{"example.com/a/../b", "", "", "/../"},
		{"example.com/.", "", "", "/./"},
		{"example.com/" + strings.Repeat("a", 600), "", "", "too long"},
		{"127.0.0.1", "", "", "loopback"},
		{"/x", "", "", "no host"},
		{"", "", "", "no host"},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := ParseScope(test.text)
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Fatalf("error %v, want %q", err, test.wrong)
			}
			if err == nil && (got.String() != test.want || got.Path != test.path) {
				t.Errorf("it is %q with the path %q", got, got.Path)
			}
		})
	}
}
