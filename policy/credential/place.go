package credential

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const authorization = "Authorization"

// put replaces the credential's placeholder by text at its proper place. It reports false if the
// placeholder is missing there or occurs twice.
func (c *Credential) put(x *Exchange, text string) bool {
	if c.Parameter != "" {
		return c.putInQuery(x.URL, text)
	}
	return c.putInHeader(x.Header, text)
}

// putInHeader is put for a header. The placeholder must be the whole value, follow a scheme, or be the
// user or password of Basic.
func (c *Credential) putInHeader(h http.Header, text string) bool {
	name := http.CanonicalHeaderKey(c.Header)
	values := h[name]
	if len(values) != 1 {
		return false
	}
	scheme, found := strings.CutSuffix(values[0], c.Placeholder)
	if found && (scheme == "" || isScheme(scheme)) {
		h[name] = []string{scheme + text}
		return true
	}
	return name == authorization && c.putInBasic(h, values[0], text)
}

// isScheme reports whether text is an authorization scheme and one space (RFC 9110, 11.4).
func isScheme(text string) bool {
	name, spaced := strings.CutSuffix(text, " ")
	return spaced && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// putInQuery is put for a parameter of the query, and escapes text.
func (c *Credential) putInQuery(u *url.URL, text string) bool {
	pairs := strings.Split(u.RawQuery, "&")
	at := -1
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if fullyUnescaped(strings.ReplaceAll(name, "+", " ")) != c.Parameter {
			continue
		}
		if at >= 0 || value != c.Placeholder {
			return false
		}
		at = i
	}
	if at < 0 {
		return false
	}
	name, _, _ := strings.Cut(pairs[at], "=")
	pairs[at] = name + "=" + url.QueryEscape(text)
	u.RawQuery = strings.Join(pairs, "&")
	return true
}

// putInBasic is put for a value of Authorization with the scheme Basic.
func (c *Credential) putInBasic(h http.Header, value, text string) bool {
	scheme, encoded, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "basic") {
		return false
	}
	plain, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return false
	}
	user, password, both := strings.Cut(string(plain), ":")
	switch {
	case !both || user == c.Placeholder && password == c.Placeholder:
		return false
	case user == c.Placeholder:
		user = text
	case password == c.Placeholder:
		password = text
	default:
		return false
	}
	h[authorization] = []string{scheme + " " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
	return true
}

// inRequest refuses a request with a placeholder outside of its body. It searches u and h instead of
// the request's own URL and header.
func (g *Guard) inRequest(r *http.Request, u *url.URL, h http.Header) *Refusal {
	for _, part := range []struct{ place, text string }{
		{"the path", u.EscapedPath()},
		{"the path", u.Path},
		{"the path", u.Opaque},
		{"the query", u.RawQuery},
		{"the fragment", u.Fragment},
		{"the method", r.Method},
		{"the host", u.Host},
		{"the host", r.Host},
	} {
		if refusal := g.inText(part.text, part.place); refusal != nil {
			return refusal
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		for _, text := range []string{u.User.Username(), password} {
			if refusal := g.inText(text, "the user or the password of the address"); refusal != nil {
				return refusal
			}
		}
	}
	if refusal := g.inHeader(h, ""); refusal != nil {
		return refusal
	}
	return g.inHeader(r.Trailer, "a trailer")
}

// inHeader refuses a placeholder in the names or values of a header or trailer. place describes it in
// the refusal. If place is "", it is the request's header, and the refusal names the field.
func (g *Guard) inHeader(h http.Header, place string) *Refusal {
	for name, values := range h {
		if i := slices.IndexFunc(g.set, func(c Credential) bool { return containsAnyCase(name, c.Placeholder) }); i >= 0 {
			return g.misplaced(i, "the name of a header")
		}
		for _, value := range values {
			if refusal := g.inText(value, cmp.Or(place, "a header")); refusal != nil {
				if place == "" {
					refusal.Request = ", header " + name
				}
				return refusal
			}
		}
	}
	return nil
}

// inText refuses a placeholder in text or its unescaped forms.
func (g *Guard) inText(text, place string) *Refusal {
	for range maxEscapes + 1 {
		if index, ok := g.placeholders.credentialIn(text); ok {
			return g.misplaced(index, place)
		}
		if place == "the host" { // clients may change the case of a host
			if i := slices.IndexFunc(g.set, func(c Credential) bool { return containsAnyCase(text, c.Placeholder) }); i >= 0 {
				return g.misplaced(i, place)
			}
		}
		plain := unescape(text)
		if plain == text {
			return nil
		}
		text = plain
	}
	return nil
}

// misplaced refuses a request with a placeholder at the wrong place.
func (g *Guard) misplaced(credential int, place string) *Refusal {
	c := &g.set[credential]
	if c.Denied {
		return c.refusal("The placeholder of %s is in %s, and these commands may not use it.", c.Name, place)
	}
	return c.refusal("The placeholder of %s is in %s. It is only for %s, %s.", c.Name, place, c.shownScopes(), c.describePlace())
}

// describePlace describes the proper place of the credential for a message.
func (c *Credential) describePlace() string {
	if c.Parameter != "" {
		return "once, as the value of the parameter " + c.Parameter
	}
	name := http.CanonicalHeaderKey(c.Header)
	words := "in the one header " + name + ", whole or after a scheme and a space"
	if name == authorization {
		words += ", or as the user or the password of Basic"
	}
	return words
}

// RefusePlaceholders refuses a request with a placeholder anywhere outside of its body. Use it for
// requests that get no credentials.
func (g *Guard) RefusePlaceholders(r *http.Request) *Refusal {
	if g == nil {
		return nil
	}
	return g.withRequest(r, g.inRequest(r, r.URL, r.Header))
}
