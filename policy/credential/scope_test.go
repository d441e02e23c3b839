package credential

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestParseScope(t *testing.T) {
	for _, test := range []struct{ text, host, path, problem string }{
		{"npm.example.org", "npm.example.org", "", ""},
		{"npm.example.org/", "npm.example.org", "", ""},
		{"npm.example.org:8443/a/b/", "npm.example.org:8443", "/a/b", ""},
		{"npm.example.org/@scope", "npm.example.org", "/@scope", ""},
		{"10.1.2.3/a", "10.1.2.3", "/a", ""},
		{"[2606:2800:220:1::36]:8443", "[2606:2800:220:1::36]:8443", "", ""},
		{"*.example.org", "", "", "wildcard"},
		{"https://npm.example.org", "", "", "https://"},
		{"npm.example.org?a=b", "", "", "query"},
		{"npm.example.org/a?b", "", "", "query"},
		{"npm.example.org/a#b", "", "", "fragment"},
		{"npm.example.org/a/../b", "", "", "dots"},
		{"npm.example.org/./b", "", "", "dots"},
		{"npm.example.org//b", "", "", "empty segment"},
		{"npm.example.org/a%2fb", "", "", "escaped"},
		{`npm.example.org/a\b`, "", "", "escaped"},
		{"npm.example.org/a;b", "", "", "escaped"},
		{"npm.example.org/a*", "", "", "escaped"},
		{"npm.example.org/a b", "", "", "escaped"},
		{"npm.example.org/ä", "", "", "escaped"},
		{"user@npm.example.org", "", "", "without scheme"},
		{"localhost", "", "", "this machine"},
		{"127.0.0.1", "", "", "loopback"},
		{"169.254.169.254", "", "", "link-local"},
		{"", "", "", "no host"},
		{"/a", "", "", "no host"},
	} {
		t.Run(test.text, func(t *testing.T) {
			s, err := ParseScope(test.text)
			switch {
			case test.problem == "" && (err != nil || s.Host.Host() != test.host || s.Path != test.path):
				t.Errorf("it is %q and %q, %v", s.Host.Host(), s.Path, err)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
				t.Errorf("the problem is %v", err)
			}
		})
	}
}

func TestScopesCoverWholeSegments(t *testing.T) {
	for _, test := range []struct {
		scope, path string
		want        bool
	}{
		{"h.example.org", "/", true},
		{"h.example.org", "/a%2f..", true}, // which is refused for its dots
		{"h.example.org/a/b", "/a/b", true},
		{"h.example.org/a/b", "/a/b/", true},
		{"h.example.org/a/b", "/a/b/c", true},
		{"h.example.org/a/b", "/a/b%2fc", true},
		{"h.example.org/a/b", "/%61/b/c", true},
		{"h.example.org/a/b", "/a/bc", false},
		{"h.example.org/a/b", "/a", false},
		{"h.example.org/a/b", "/a%2fb", false},
		{"h.example.org/a/b", "/a%2fb/c", false},
		{"h.example.org/a/b", "/a%252fb", false},
		{"h.example.org/a/b", "/a//b", false},
		{"h.example.org/a/b", "//a/b", false},
		{"h.example.org/a/b", "/A/b", false},
		{"h.example.org/a/b", "/a/b;x", false},
		{"h.example.org/a/b", "/a/b%3fc", false},
		{"h.example.org/@scope", "/@scope%2Fname", true},
		{"h.example.org/@scope", "/@scope/name/-/name-1.tgz", true},
		{"h.example.org/@scope", "/@scoped%2fname", false},
	} {
		must.Same(t, test.want, scopes(t, test.scope)[0].coversPath(test.path), test.scope, test.path)
	}
}

func TestRefusesAmbiguousPaths(t *testing.T) {
	for _, path := range []string{
		"/a/../b", "/..", "/./a", "/a/.", "/a/%2e%2e/b", "/a/.%2E/b", "/a/%252e%252e/b", "/a/%25252e./b", "/a/%2525252525252e", "/a%2f..%2fb", "/a%252f..", "/a/%EF%BC%8E%EF%BC%8E/b", "/a/%E2%80%A5/b", "/a/.%C2%AD./b", "/a%EF%BC%8F..%EF%BC%8Fb", "/a%EF%BC%BCb", "/a%5c..%5cb", `/a\b`, "/a%5cb", "/a%255cb",
		"/a/..;/b", "/a/..;x=y/b", "/a/..%3b/b", "/a/.%3bx/b", "/a/..%20/b", "/a/%20../b", "/a/.../b", "/a/..%00/b", "/a%0d%0ab", "/a/%c0%ae%c0%ae/b", "/a/..%09/b", "/%2e", "/a/%e0%80%ae",
	} {
		if ambiguousPath(path) == "" {
			t.Errorf("%s is let through", path)
		}
	}
	for _, path := range []string{"/", "/a/b", "/@scope%2fname", "/a//b", "/.well-known/x", "/a..b/c...d", "/a%20b", "/a%25b", "/ä", "/%C3%A4", "/a;b/c", "/...a", "/-/v1", "/100%25/x"} {
		must.Same(t, "", ambiguousPath(path), path)
	}
}

// However a server unescapes and cleans a path that is let through, it stays in its scope.
func FuzzPathsStayInTheirScope(f *testing.F) {
	for _, seed := range []string{"/a/b/c", "/a/b%2fc", "/a/b/%2e%2e/c", "/a/b/..;/c", "/a/b/%252e%252e%255c", "/%61/b//..", "/a/b/.%20/", "/a/b;x/../c", `/a/b\..\c`} {
		f.Add(seed)
	}
	scope := scopes(f, "h.example.org/a/b")[0]
	parameters := regexp.MustCompile(`;[^/]*`)
	f.Fuzz(func(t *testing.T, escaped string) {
		if !strings.HasPrefix(escaped, "/") || !scope.coversPath(escaped) || ambiguousPath(escaped) != "" {
			t.Skip()
		}
		for level := escaped; ; {
			level = unescape(level)
			for _, read := range []string{level, strings.ReplaceAll(level, `\`, "/"), parameters.ReplaceAllString(level, ""), strings.ToLower(level)} {
				if cleaned := path.Clean(read); cleaned != "/a/b" && !strings.HasPrefix(cleaned, "/a/b/") {
					t.Fatalf("%q is read as %q", escaped, cleaned)
				}
			}
			if plain := unescape(level); plain == level {
				return
			}
		}
	})
}
