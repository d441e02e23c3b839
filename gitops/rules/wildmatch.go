package rules

import "strings"

// verdict is the result of a step of the match. hopeless and beyondThisPart stop the search early:
// without them, several "*" or "**" would take exponential time, as "**" does in git.
type verdict uint8

const (
	mismatch verdict = iota
	match
	hopeless       // the rest of the text cannot match, wherever a "*" ends
	beyondThisPart // a "*" reached a slash: only an earlier "**" can continue
)

// matcher matches a text with a pattern, as gitignore(5) describes.
type matcher struct {
	paths bool // "*", "?" and "[" do not match a slash; "**" does
	fold  bool // ignores the case of ASCII letters
}

// matches reports whether pattern matches the whole text.
func (m matcher) matches(pattern, text string) bool {
	if m.fold {
		text = lower(text)
	}
	return m.run(pattern, 0, text) == match
}

// run matches text with the pattern from p on. It gets the whole pattern, because a "**" is only
// special if it is alone between slashes.
func (m matcher) run(pattern string, p int, text string) verdict {
	for ; p < len(pattern); p++ {
		c := pattern[p]
		if c == '*' {
			next, rest, v := m.matchStar(pattern, p, text)
			if next < 0 {
				return v
			}
			p, text = next, rest
			continue
		}
		if text == "" {
			return hopeless
		}
		next, ok, v := m.matchOne(pattern, p, text[0])
		if !ok {
			return v
		}
		p, text = next, text[1:]
	}
	if text == "" {
		return match
	}
	return mismatch
}

// matchOne matches one character. next is the position of the last byte of the pattern that was
// used. v is the verdict if ok is false.
func (m matcher) matchOne(pattern string, p int, t byte) (next int, ok bool, v verdict) {
	switch c := pattern[p]; c {
	case '?':
		return p, !m.paths || t != '/', mismatch
	case '[':
		return m.matchClass(pattern, p, t)
	case '\\':
		p++
		if p == len(pattern) {
			return p, false, mismatch
		}
		return p, m.matchesByte(pattern[p], t), mismatch
	default:
		return p, m.matchesByte(c, t), mismatch
	}
}

// matchesByte reports whether byte p of the pattern matches byte t of the text, possibly in the other case.
func (m matcher) matchesByte(p, t byte) bool {
	return p == t || m.fold && 'A' <= p && p <= 'Z' && p+'a'-'A' == t
}

// matchStar matches one or more "*" at p. If next is negative, v is the final verdict. Otherwise
// the match continues after pattern[next], with rest.
func (m matcher) matchStar(pattern string, p int, text string) (next int, rest string, v verdict) {
	end := endOfStars(pattern, p)
	slashes := !m.paths
	if m.paths && isWholePart(pattern, p, end) {
		for end < len(pattern) && pattern[end] == '/' { // "**/**" matches what "**" does, and must not recurse
			next := endOfStars(pattern, end+1)
			if !isWholePart(pattern, end+1, next) {
				break
			}
			end = next
		}
		if end < len(pattern) && pattern[end] == '/' {
			if v := m.run(pattern, end+1, text); v == match || v == hopeless {
				return -1, "", v
			}
		}
		slashes = true
	}
	if end == len(pattern) {
		if !slashes && strings.Contains(text, "/") {
			return -1, "", beyondThisPart
		}
		return -1, "", match
	}
	if !slashes && pattern[end] == '/' {
		at := strings.IndexByte(text, '/')
		if at < 0 {
			return -1, "", hopeless
		}
		return end, text[at+1:], mismatch
	}
	return -1, "", m.matchRest(pattern, end, text, slashes)
}

// endOfStars returns the position after all "*" at p.
func endOfStars(pattern string, p int) int {
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p
}

// isWholePart reports whether the "*" from p to end are two or more, and a whole part of a path.
func isWholePart(pattern string, p, end int) bool {
	if end-p < 2 || p > 0 && pattern[p-1] != '/' {
		return false
	}
	rest := pattern[end:]
	return rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)
}

// matchRest tries the pattern after a "*" at every position of text that the "*" can reach. slashes
// means that it can pass slashes.
func (m matcher) matchRest(pattern string, p int, text string, slashes bool) verdict {
	for ; text != ""; text = text[1:] {
		v := m.run(pattern, p, text)
		if v != mismatch && (!slashes || v != beyondThisPart) {
			return v
		}
		if v == mismatch && !slashes && text[0] == '/' {
			return beyondThisPart
		}
	}
	return hopeless
}

// matchClass matches t with the bracket expression at p. It returns what matchOne returns.
func (m matcher) matchClass(pattern string, p int, t byte) (next int, ok bool, v verdict) {
	p++
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	found := false
	before := byte(0) // the character before, with which a range may start; 0 for none
	for first := true; ; first = false {
		if p >= len(pattern) {
			return p, false, hopeless
		}
		if pattern[p] == ']' && !first {
			break
		}
		var hit bool
		p, before, hit = m.classItem(pattern, p, before, t)
		if p < 0 {
			return 0, false, hopeless
		}
		found = found || hit
		p++
	}
	return p, found != negated && (!m.paths || t != '/'), mismatch
}

// classItem matches t with the character, range or named class at p. It returns whether it matches, and the position of
// the last byte used, or -1 for an invalid pattern. A range can start with the character before; rangeStart is that of
// the next item. 0 means that no range can start.
func (m matcher) classItem(pattern string, p int, before, t byte) (last int, rangeStart byte, matches bool) {
	c := pattern[p]
	isRange := c == '-' && before != 0 && p+1 < len(pattern) && pattern[p+1] != ']'
	switch {
	case isRange:
		p++
		if pattern[p] == '\\' {
			p++
		}
		if p == len(pattern) {
			return -1, 0, false
		}
		return p, 0, m.isInRange(before, pattern[p], t)
	case c == '\\':
		p++
		if p == len(pattern) {
			return -1, 0, false
		}
		return p, pattern[p], t == pattern[p]
	case strings.HasPrefix(pattern[p:], "[:"):
		return m.namedClass(pattern, p, t)
	}
	return p, c, t == c
}

// isInRange reports whether t is in a range.
func (m matcher) isInRange(from, to, t byte) bool {
	if from <= t && t <= to {
		return true
	}
	if !m.fold || t < 'a' || t > 'z' {
		return false
	}
	upper := t - 'a' + 'A'
	return from <= upper && upper <= to
}

// namedClass matches t with a class such as [:alpha:] at p. It returns what classItem returns.
func (m matcher) namedClass(pattern string, p int, t byte) (int, byte, bool) {
	n := strings.IndexByte(pattern[p+2:], ']')
	if n < 0 {
		return -1, 0, false
	}
	end := p + 2 + n
	if n == 0 || pattern[end-1] != ':' {
		return p, '[', t == '['
	}
	in, known := classes[pattern[p+2:end-1]]
	if !known {
		return -1, 0, false
	}
	hit := in(t) || m.fold && pattern[p+2:end-1] == "upper" && 'a' <= t && t <= 'z'
	return end, 0, hit
}

var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < 32 || c == 127 },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return 32 < c && c < 127 },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return 32 <= c && c < 127 },
	"punct":  func(c byte) bool { return 32 < c && c < 127 && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
