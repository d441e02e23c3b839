package credential

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// set is one credential of each kind, and one that is withheld.
func set(t testing.TB) Set {
	get := []string{http.MethodGet, http.MethodHead}
	made := func(c Credential, letter string, hosts ...string) Credential {
		c.Value, c.Placeholder, c.Scopes = strings.Repeat(letter, 12)+"value+/=", strings.Repeat(letter, 4)+"Placeholder00000", scopes(t, hosts...)
		return c
	}
	return Set{
		made(Credential{Name: "HEADER", Header: "authorization", Methods: get}, "h", "npm.example.org/team", "npm.example.org:8443"),
		made(Credential{Name: "KEYED", Header: "X-Api-Key", Methods: []string{"GET", "POST"}}, "k", "npm.example.org"),
		made(Credential{Name: "QUERY", Parameter: "token", Methods: get}, "q", "npm.example.org"),
		made(Credential{Name: "BASIC", Header: "Authorization", Methods: get}, "b", "npm.example.org"),
		made(Credential{Name: "GIT", Header: "Authorization", Fetch: true}, "g", "git.example.org/owner/repository", "git.example.org/other.git"),
		made(Credential{Name: "OTHERS", Header: "Authorization", Methods: get, Denied: true}, "o", "npm.example.org"),
	}
}

var (
	npm = reach.Target{Protocol: reach.HTTPS, Name: "npm.example.org", Port: 443}
	git = reach.Target{Protocol: reach.HTTPS, Name: "git.example.org", Port: 443}
)

func request(t testing.TB, head string) *http.Request {
	t.Helper()
	first, rest, _ := strings.Cut(head, "\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(first + " HTTP/1.1\r\nHost: h\r\n" + strings.ReplaceAll(rest, "\n", "\r\n") + "\r\n\r\n")))
	must.Do(t, err, head)
	return r
}

// written is a request with the placeholders and values of the set in the place of
// H, K, Q, B, G and O in brackets; in double ones, in Basic.
func written(text string, s Set, values bool) string {
	for _, c := range s {
		stands := c.Placeholder
		if values {
			stands = c.Value
		}
		letter := strings.ToUpper(c.Placeholder[:1])
		basic := func(plain string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(plain)) }
		text = strings.NewReplacer(
			"{{"+letter+":}}", basic(stands+":x"), "{{:"+letter+"}}", basic("me:"+stands), "{{"+letter+":"+letter+"}}", basic(stands+":"+stands),
			"{{x"+letter+"}}", basic("me:x"+stands), "{"+letter+"}", stands,
		).Replace(text)
	}
	return text
}

func TestPutsValuesInPlace(t *testing.T) {
	s := set(t)
	g := NewGuard(s)
	for _, test := range []struct {
		to      reach.Target
		request string
		uses    string
	}{
		{npm, "GET /team/a\nAuthorization: Bearer {H}", "HEADER"},
		{npm, "GET /team/a\nAuthorization: {H}", "HEADER"},
		{npm, "HEAD /team\nauthorization: token {H}", "HEADER"},
		{npm, "GET /team%2fname\nAuthorization: Bearer {H}", "HEADER"},
		{npm, "GET /team/a\nAuthorization: {{:H}}", "HEADER"},
		{npm, "GET /x\nAuthorization: Bearer {B}", "BASIC"},
		{npm, "POST /x\nX-Api-Key: {K}", "KEYED"},
		{npm, "GET /x?a=b&token={Q}&c=d", "QUERY"},
		{npm, "GET /x?t%6fken={Q}", "QUERY"},
		{npm, "GET /x\nAuthorization: {{:B}}", "BASIC"},
		{npm, "GET /x\nAuthorization: {{B:}}", "BASIC"},
		{npm, "GET /x?token={Q}\nX-Api-Key: {K}\nAuthorization: {{:B}}", "KEYED QUERY BASIC"},
		{npm, "GET /x\nAuthorization: Bearer mine", ""},
		{npm, "PUT /../x?_method=DELETE\nX-HTTP-Method-Override: PUT", ""},
		{git, "GET /owner/repository.git/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT"},
		{git, "GET /owner/repository/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT"},
		{git, "POST /owner/repository.git/git-upload-pack\nAuthorization: {{:G}}", "GIT"},
		{git, "POST /owner/repository/below.git/git-upload-pack\nAuthorization: {{:G}}", "GIT"},
		{git, "GET /other/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT"},
		{git, "GET /owner/repository/info/refs?service=git-upload-pack", ""},
	} {
		t.Run(test.request, func(t *testing.T) {
			r := request(t, written(test.request, s, false))
			before := r.URL.String()
			x, refusal := g.Exchange(r, test.to, false)
			if refusal != nil {
				t.Fatal(refusal)
			}
			want := request(t, written(strings.NewReplacer("={Q}", "=qqqqqqqqqqqqvalue%2B%2F%3D").Replace(test.request), s, true))
			must.Same(t, want.URL.String(), x.URL.String(), x.URL, x.Uses)
			must.Same(t, test.uses, strings.Join(x.Uses, " "), x.URL, x.Uses)
			for name := range want.Header {
				must.Same(t, strings.Join(want.Header[name], "|"), strings.Join(x.Header[name], "|"), name, x.Header[name], want.Header[name])
			}
			if r.URL.String() != before || strings.Contains(strings.Join(r.Header["Authorization"], ""), "value") {
				t.Error("the request that came was changed")
			}
		})
	}
}

func TestRefusesMisuse(t *testing.T) {
	s := set(t)
	g := NewGuard(s)
	other := reach.Target{Protocol: reach.HTTPS, Name: "npm.example.org", Port: 8443}
	for _, test := range []struct {
		to             reach.Target
		bound          bool
		request        string
		names, because string
	}{
		{npm, false, "GET /teams\nAuthorization: Bearer {H}", "HEADER", "npm.example.org/team, npm.example.org:8443 alone"},
		{npm, false, "GET /team/%2e%2e/x\nAuthorization: Bearer {H}", "HEADER, KEYED, QUERY, BASIC", "segment of dots"},
		{npm, false, "GET /team/..;/x\nAuthorization: Bearer {H}", "HEADER, KEYED, QUERY, BASIC", "segment of dots"},
		{npm, false, "GET /team/%255c../x\nAuthorization: Bearer {H}", "HEADER, KEYED, QUERY, BASIC", "backslash"},
		{npm, false, "DELETE /team/a\nAuthorization: Bearer {H}", "HEADER", "GET and HEAD alone"},
		{npm, false, "get /team/a\nAuthorization: Bearer {H}", "HEADER", "GET and HEAD alone"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-HTTP-Method-Override: DELETE", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX_Http_Method: DELETE", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Forwarded-Path: /x", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Forwarded-Prefix: /x", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Original-Method: DELETE", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Rewrite-Path: /x", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Envoy-Original-Path: /x", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Verb-Override: DELETE", "HEADER, KEYED, QUERY, BASIC", "contradicts its header"},
		{npm, false, "GET /team/a?.%6dethod=DELETE\nAuthorization: Bearer {H}", "HEADER, KEYED, QUERY, BASIC", "contradicts the parameter _method"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Original-URL: /admin", "HEADER, KEYED, QUERY, BASIC", "contradicts its header x-original-url"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Forwarded-Host: evil.example.org", "HEADER, KEYED, QUERY, BASIC", "contradicts its header x-forwarded-host"},
		{npm, false, "GET /team/a?_%6dethod=DELETE\nAuthorization: Bearer {H}", "HEADER, KEYED, QUERY, BASIC", "contradicts the parameter _method"},
		{npm, false, "GET /team/a\nAuthorization: Bearer  {H}", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nAuthorization: a b {H}", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H},x", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H} {H}", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nAuthorization: Bearer x{H}", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nAuthorization: Bearer x", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nAuthorization: Bearer {H}\nX-Other: {H}", "HEADER", ", header X-Other"},
		{npm, false, "GET /team/a\nAuthorization: {{H:H}}", "HEADER", ", header Authorization"},
		{npm, false, "GET /team/a\nProxy-Authorization: {{:H}}", "HEADER", ", header Proxy-Authorization"},
		{npm, false, "GET /team/a\nProxy-Authorization: Bearer {H}", "HEADER", ", header Proxy-Authorization"},
		{npm, false, "GET /team/a\nCookie: a=b; session={H}", "HEADER", ", header Cookie"},
		{npm, false, "GET /team/a\nCookie: a=%68hhhPlaceholder00000", "HEADER", ", header Cookie"},
		{npm, false, "GET /team/a\nX-{H}: 1", "HEADER", "the name of a header"},
		{npm, false, "GET /team/a\nReferer: https://npm.example.org/{H}", "HEADER", ", header Referer"},
		{npm, false, "GET /team/a\nUser-Agent: {H}", "HEADER", ", header User-Agent"},
		{npm, false, "GET /team/{H}", "HEADER", "the path"},
		{npm, false, "GET /team/%68hhhPlaceholder00000", "HEADER", "the path"},
		{npm, false, "GET /team/%2568hhhPlaceholder00000", "HEADER", "the path"},
		{npm, false, "GET /team/a?x={H}", "HEADER", "the query"},
		{npm, false, "GET /team/a?{H}=x", "HEADER", "the query"},
		{npm, false, "GET /team/a?x=%68hhhPlaceholder00000", "HEADER", "the query"},
		{npm, false, "{H} /team/a", "HEADER", "the method"},
		{npm, false, "GET https://{H}@npm.example.org/team/a", "HEADER", "the user or the password"},
		{npm, false, "GET https://{H}.npm.example.org/team/a", "HEADER", "the host"},
		{npm, false, "GET /x?token={Q}&token=x", "QUERY", "the query"},
		{npm, false, "GET /x?token=x&tok%65n={Q}", "QUERY", "the query"},
		{npm, false, "GET /x?token={Q};a=b", "QUERY", "the query"},
		{npm, false, "GET /x?token=x{Q}", "QUERY", "the query"},
		{npm, false, "GET /x?token[]={Q}", "QUERY", "the query"},
		{npm, false, "POST /x?token={Q}", "QUERY", "GET and HEAD alone"},
		{npm, false, "GET /x\nX-Api-Key: {{:K}}", "KEYED", ", header X-Api-Key"},
		{npm, false, "GET /x\nAuthorization: {{xB}}", "BASIC", ", header Authorization"},
		{npm, false, "GET /x\nAuthorization: {{B:B}}", "BASIC", ", header Authorization"},
		{npm, false, "GET /x\nAuthorization: {{:B}}\nAuthorization: {{:B}}", "BASIC", ", header Authorization"},
		{npm, false, "GET /x\nAuthorization: Bearer {O}", "OTHERS", "may not use it"},
		{npm, false, "GET /x\nAuthorization: {{:G}}", "GIT", "only for git.example.org/owner/repository, git.example.org/other.git"},
		{other, false, "GET /x\nX-Api-Key: {K}", "KEYED", "only for npm.example.org"},
		{git, false, "GET /owner/repository/a\nAuthorization: Bearer {H}", "HEADER", "only for npm.example.org/team, npm.example.org:8443"},
		{git, false, "GET /owner/repository/info/refs?service=git-receive-pack\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository/info/refs?service=git-receive-pack", "GIT", "not for pushing"},
		{git, false, "GET /elsewhere/info/refs?service=git-%72eceive-pack", "GIT", "not for pushing"},
		{git, false, "POST /owner/repository/git-receive-pack", "GIT", "not for pushing"},
		{git, false, "POST /owner/repository/git-%2572eceive-pack", "GIT", "not for pushing"},
		{git, false, "POST /owner/repository/git-receive-pack\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository/info/refs?service=git-upload-pack&x=y\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository/info/refs\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "POST /owner/repository/git-upload-pack?x\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "POST /owner/repository/git-upload-pack?\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository/git-upload-pack\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository/archive.tar.gz\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/another.git/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository.git/x/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository%2fx/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT", "fetching with git"},
		{git, false, "GET /owner/repository/../another/info/refs?service=git-upload-pack\nAuthorization: {{:G}}", "GIT", "segment of dots"},
		{git, true, "GET /owner/repository/archive.tar.gz", "GIT", "open only for the requests of a secret"},
		{other, true, "POST /x", "HEADER", "open only for the requests of a secret"},
		{other, true, "GET /x/../y", "HEADER", "segment of dots"},
		{other, true, "GET /x\nX-Method-Override: PUT", "HEADER", "contradicts its header x-method-override"},
		{npm, true, "PUT /x", "HEADER, KEYED, QUERY, BASIC", "open only for the requests of a secret"},
	} {
		t.Run(test.request, func(t *testing.T) {
			x, refusal := g.Exchange(request(t, written(test.request, s, false)), test.to, test.bound)
			switch {
			case refusal == nil:
				t.Fatalf("it goes out as %s %v", x.URL, x.Header)
			case refusal.Rule() != "policy.secrets: "+test.names || !strings.Contains(refusal.Reason+" "+refusal.Request, test.because):
				t.Errorf("it is refused by %s: %s (%s)", refusal.Rule(), refusal.Reason, refusal.Request)
			}
			for _, c := range s {
				if told := refusal.Reason + refusal.Request; strings.Contains(told, c.Placeholder) || strings.Contains(told, c.Value) {
					t.Errorf("the refusal tells: %s", told)
				}
			}
		})
	}
	if refusal := g.RefusePlaceholders(request(t, written("GET /\nAuthorization: Bearer {H}", s, false))); refusal == nil {
		t.Error("a placeholder elsewhere is let through")
	}
	must.Same(t, nil, g.RefusePlaceholders(request(t, "GET /\nAuthorization: Bearer mine")))
}

// There are as many reasons as ways to misuse a credential, and not as many as requests:
// what of a request is its own stands apart.
func TestReasonsNameKindOfMisuse(t *testing.T) {
	s := set(t)
	g := NewGuard(s)
	reasons := map[string]bool{}
	for i := range 20 {
		for _, format := range []string{"GET /x%d\nAuthorization: Bearer {H}", "M%d /team/a\nAuthorization: Bearer {H}", "GET /team/a\nX-%d: {H}", "GET /team/%d/{H}"} {
			text := fmt.Sprintf(format, i)
			_, refusal := g.Exchange(request(t, written(text, s, false)), npm, false)
			if refusal == nil {
				t.Fatalf("%s is let through", text)
			}
			reasons[refusal.Reason] = true
			if strings.HasSuffix(text, "{H}") && strings.Contains(text, "\n") && !strings.Contains(refusal.Request, fmt.Sprint(i)) {
				t.Errorf("of %s is noted %q", text, refusal.Request)
			}
		}
	}
	must.Same(t, 4, len(reasons), "there", reasons)
}

// Whatever a request is put together from: a value is in it where it belongs, or nowhere,
// and no placeholder goes out.
func TestPutsValuesNowhereElse(t *testing.T) {
	s := set(t)
	g := NewGuard(s)
	h, q, b := s[0], s[2], s[3]
	basic := func(plain string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(plain)) }
	parts := []string{"", "x", "Bearer ", " ", ",", h.Placeholder, q.Placeholder, b.Placeholder, "/team", "/", "%2f", "..", "%2e", "token", "=", "&", "?", ";", basic("me:" + b.Placeholder), basic(b.Placeholder + ":"), "%61"}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 4).Draw(t, "parts"), "")
	})
	sent := 0
	rapid.Check(t, func(t *rapid.T) {
		path, query := rapid.SampledFrom([]string{"/team/", "/team", "/"}).Draw(t, "path")+text.Draw(t, "rest"), rapid.SampledFrom([]string{"", "token=" + q.Placeholder, "token="}).Draw(t, "query")+text.Draw(t, "query")
		u, err := url.ParseRequestURI(path + "?" + query)
		if err != nil {
			t.Skip(err)
		}
		r := &http.Request{Method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"), URL: u, Host: "npm.example.org", Header: http.Header{}}
		for _, name := range []string{"Authorization", "X-Other"} {
			values := append(rapid.SliceOfN(text, 0, 1).Draw(t, name), rapid.SliceOfN(rapid.SampledFrom([]string{"Bearer " + h.Placeholder, basic("me:" + b.Placeholder)}), 0, 1).Draw(t, name)...)
			if len(values) > 0 {
				r.Header[name] = values
			}
		}
		if rapid.Bool().Draw(t, "allowed") {
			r.Method, r.URL, r.Header = "GET", &url.URL{Path: "/team/package"}, http.Header{"Authorization": {"Bearer " + h.Placeholder}}
		}
		x, refusal := g.Exchange(r, npm, false)
		if refusal != nil {
			return
		}
		if len(x.Uses) > 0 {
			sent++
			if ambiguousPath(r.URL.EscapedPath()) != "" || r.Method != "GET" {
				t.Fatalf("%s %s goes out with %q", r.Method, r.URL, x.Uses)
			}
		}
		authorization := strings.Join(x.Header["Authorization"], "|")
		_, password, _ := (&http.Request{Header: x.Header}).BasicAuth()
		user, _, _ := (&http.Request{Header: x.Header}).BasicAuth()
		authorizes := func(c Credential) bool {
			return strings.HasSuffix(authorization, c.Value) || user == c.Value || password == c.Value
		}
		for name, stands := range map[string]bool{"HEADER": authorizes(h), "QUERY": x.URL.Query().Get("token") == q.Value, "BASIC": authorizes(b)} {
			if stands != slices.Contains(x.Uses, name) {
				t.Fatalf("%s: %t, uses %q, of %s %v", name, stands, x.Uses, x.URL, x.Header)
			}
		}
		whole := x.URL.String() + " " + x.URL.Path + authorization + user + password + strings.Join(x.Header["X-Other"], "|")
		for _, c := range []Credential{h, q, b} {
			if strings.Contains(whole, c.Placeholder) || strings.Contains(strings.Join(x.Header["X-Other"], ""), c.Value) || strings.Contains(x.URL.Path, c.Value) {
				t.Fatalf("%s goes out in %s", c.Name, whole)
			}
		}
	})
	if sent == 0 {
		t.Error("no request went out with a value")
	}
}

func TestSearchesBodies(t *testing.T) {
	s := set(t)
	g := NewGuard(s)
	none := func() http.Header { return nil }
	text := strings.Repeat("x", 100) + "hhhhh" + strings.Repeat("y", 100)
	for cut := range s[0].Placeholder {
		body := io.MultiReader(strings.NewReader(text+s[0].Placeholder[:cut]), strings.NewReader(s[0].Placeholder[cut:]+text))
		got, err := io.ReadAll(g.SearchBody(body, none))
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || !strings.Contains(refusal.Reason, "HEADER is in the body") || strings.Contains(string(got), s[0].Placeholder) {
			t.Errorf("cut at %d it gives %q, %v", cut, got, err)
		}
	}
	must.Fail(t, "", must.Err(io.ReadAll(g.SearchBody(iotest.OneByteReader(strings.NewReader(text+written("{{:H}}", s, false)+text)), none))), "base64")
	must.Same(t, text, string(must.Get(io.ReadAll(g.SearchBody(iotest.OneByteReader(strings.NewReader(text)), none)))(t)), "a body without")
	trailer := func() http.Header { return http.Header{"X-End": {s[0].Placeholder}} }
	must.Fail(t, "a trailer", must.Err(io.ReadAll(g.SearchBody(strings.NewReader(text), trailer))), "a trailer")
}
