package credential

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const authorization = "Authorization"

// replacePlaceholder replaces the credential's placeholder by text at its proper place. It returns false if the
// placeholder is missing there or occurs twice.
func (c *Credential) replacePlaceholder(to *Exchange, text string) bool {
	if c.Parameter != "" {
		return c.replaceInQuery(to.URL, text)
	}
	return c.replaceInHeader(to.Header, text)
}

// replaceInHeader replaces the placeholder by text in the header of the credential, and returns false if it
// cannot. The placeholder must be the whole value, follow a scheme, or be the user or password of Basic.
func (c *Credential) replaceInHeader(h http.Header, text string) bool {
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
	return name == authorization && c.replaceInBasic(h, values[0], text)
}

// isScheme reports whether text is an authorization scheme and one space (RFC 9110, 11.4).
func isScheme(text string) bool {
	name, hasSpace := strings.CutSuffix(text, " ")
	return hasSpace && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// replaceInQuery replaces the placeholder by text, escaped, if it is the value of the only query parameter
// called c.Parameter. Otherwise it returns false.
func (c *Credential) replaceInQuery(u *url.URL, text string) bool {
	pairs := strings.Split(u.RawQuery, "&")
	index := -1
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if fullyUnescaped(strings.ReplaceAll(name, "+", " ")) != c.Parameter {
			continue
		}
		if index >= 0 || value != c.Placeholder {
			return false
		}
		index = i
	}
	if index < 0 {
		return false
	}
	name, _, _ := strings.Cut(pairs[index], "=")
	pairs[index] = name + "=" + url.QueryEscape(text)
	u.RawQuery = strings.Join(pairs, "&")
	return true
}

// replaceInBasic replaces the placeholder by text in a value of Authorization with the scheme Basic, if it
// is the user or the password there. Otherwise it returns false.
func (c *Credential) replaceInBasic(h http.Header, value, text string) bool {
	scheme, encoded, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "basic") {
		return false
	}
	plain, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return false
	}
	user, password, hasPassword := strings.Cut(string(plain), ":")
	switch {
	case !hasPassword || user == c.Placeholder && password == c.Placeholder:
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

// findInRequest returns a refusal if a placeholder is anywhere in the request except its body, and nil
// otherwise. It searches u and h instead of the request's own URL and header.
func (g *Guard) findInRequest(r *http.Request, u *url.URL, h http.Header) *Refusal {
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
		if refusal := g.findInText(part.text, part.place); refusal != nil {
			return refusal
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		for _, text := range []string{u.User.Username(), password} {
			if refusal := g.findInText(text, "the user or the password of the address"); refusal != nil {
				return refusal
			}
		}
	}
	if refusal := g.findInHeader(h, inHeader); refusal != nil {
		return refusal
	}
	return g.findInHeader(r.Trailer, "a trailer")
}

// inHeader describes a request's header in a refusal.
const inHeader = "a header"

// findInHeader returns a refusal if a placeholder is in the names or values of a header or trailer, and nil
// otherwise. place describes it in the refusal. For inHeader, the refusal also names the field.
func (g *Guard) findInHeader(h http.Header, place string) *Refusal {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if i := slices.IndexFunc(g.set, func(c Credential) bool { return containsAnyCase(name, c.Placeholder) }); i >= 0 {
			return g.refuseMisplaced(i, "the name of a header")
		}
		for _, value := range h[name] {
			if refusal := g.findInText(value, place); refusal != nil {
				if place == inHeader {
					refusal.Request = ", header " + name
				}
				return refusal
			}
		}
	}
	return nil
}

// findInText returns a refusal if a placeholder is in text or its unescaped forms, and nil otherwise. It
// unescapes up to maxEscapeLevels times. place describes the text in the refusal.
func (g *Guard) findInText(text, place string) *Refusal {
	for range maxEscapeLevels + 1 {
		if index, ok := g.placeholders.credentialIn(text); ok {
			return g.refuseMisplaced(index, place)
		}
		if place == "the host" { // clients may change the case of a host
			if i := slices.IndexFunc(g.set, func(c Credential) bool { return containsAnyCase(text, c.Placeholder) }); i >= 0 {
				return g.refuseMisplaced(i, place)
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

// refuseMisplaced refuses a request with a placeholder at the wrong place.
func (g *Guard) refuseMisplaced(credential int, place string) *Refusal {
	c := &g.set[credential]
	if c.Denied {
		return c.newRefusal("The placeholder of %s is in %s, and these commands may not use it.", c.Name, place)
	}
	return c.newRefusal("The placeholder of %s is in %s. It is only for %s, %s.", c.Name, place, c.scopesText(), c.describePlace())
}

// describePlace describes the proper place of the credential for a message.
func (c *Credential) describePlace() string {
	if c.Parameter != "" {
		return "once, as the value of the parameter " + c.Parameter
	}
	name := http.CanonicalHeaderKey(c.Header)
	description := "in the one header " + name + ", whole or after a scheme and a space"
	if name == authorization {
		description += ", or as the user or the password of Basic"
	}
	return description
}

// RefusePlaceholders refuses a request with a placeholder anywhere outside of its body. It returns nil for any other
// request. Use it for requests that get no credentials.
func (g *Guard) RefusePlaceholders(r *http.Request) *Refusal {
	if g == nil {
		return nil
	}
	return g.withRequest(r, g.findInRequest(r, r.URL, r.Header))
}
