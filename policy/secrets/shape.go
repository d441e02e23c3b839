package secrets

import "strings"

// shape describes tokens of one kind: a prefix, and a rest that measure recognises.
type shape struct {
	name     string
	prefixes []string
	measure  measure
}

// measure returns the length of a token's rest. If rest begins no token, length is -1, and no token of this
// shape begins in the first skippable bytes. Skipping these keeps the time linear for hostile text.
type measure func(rest string) (length, skippable int)

// shapes lists the well-known shapes, as published by their issuers.
var shapes = []shape{
	{"GitHub token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, measureSequence(wordBytes, 30, 0)},
	{"GitHub fine-grained token", []string{"github_pat_"}, measureSequence(wordBytes, 36, 0)},
	{"GitLab token", []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-"}, measureSequence(urlBytes, 20, 0)},
	{"OpenAI key", []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"}, measureSequence(urlBytes, 20, 0)},
	{"Anthropic key", []string{"sk-ant-"}, measureSequence(urlBytes, 20, 0)},
	{"API key", []string{"sk-or-v1-", "sk-"}, measureSequence(alphanumericBytes, 32, 0)},
	{"AWS access key ID", []string{"AKIA", "ASIA", "ABIA", "ACCA"}, measureSequence(base32Bytes, 16, 16)},
	{"AWS Bedrock key", []string{"ABSK"}, measureSequence(base64Bytes, 100, 0)},
	{"Google API key", []string{"AIza"}, measureSequence(urlBytes, 35, 35)},
	{"Google OAuth secret", []string{"GOCSPX-"}, measureSequence(urlBytes, 28, 28)},
	{"Google OAuth token", []string{"ya29."}, measureSequence(urlBytes, 30, 0)},
	{"Azure storage key", []string{"AccountKey="}, measureSequence(base64Bytes, 80, 0)},
	{"Slack token", []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-"}, measureSequence(dashBytes, 20, 0)},
	{"Slack webhook", []string{"https://hooks.slack.com/services/"}, measureSequence(pathBytes, 30, 0)},
	{"npm token", []string{"npm_"}, measureSequence(alphanumericBytes, 36, 36)},
	{"PyPI token", []string{"pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"}, measureSequence(urlBytes, 50, 0)},
	{"RubyGems key", []string{"rubygems_"}, measureSequence(hexBytes, 48, 48)},
	{"crates.io token", []string{"cio"}, measureSequence(alphanumericBytes, 32, 32)},
	{"Docker Hub token", []string{"dckr_pat_", "dckr_oat_"}, measureSequence(urlBytes, 24, 0)},
	{"Hugging Face token", []string{"hf_"}, measureSequence(alphanumericBytes, 34, 40)},
	{"Stripe key", []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"}, measureSequence(alphanumericBytes, 20, 0)},
	{"SendGrid key", []string{"SG."}, measureDotted(measureSequence(urlBytes, 22, 22), measureSequence(urlBytes, 43, 43))},
	{"DigitalOcean token", []string{"dop_v1_", "doo_v1_", "dor_v1_"}, measureSequence(hexBytes, 64, 64)},
	{"Vault token", []string{"hvs.", "hvb.", "hvr."}, measureSequence(urlBytes, 24, 0)},
	{"Shopify token", []string{"shpat_", "shpca_", "shppa_", "shpss_"}, measureSequence(hexBytes, 32, 32)},
	{"Databricks token", []string{"dapi"}, measureSequence(hexBytes, 32, 32)},
	{"Linear key", []string{"lin_api_"}, measureSequence(alphanumericBytes, 40, 40)},
	{"Atlassian token", []string{"ATATT3xFfGF0", "ATCTT3xFfGN0"}, measureSequence(urlBytes, 50, 0)},
	{"Grafana token", []string{"glsa_", "glc_"}, measureSequence(wordBytes, 32, 0)},
	{"New Relic key", []string{"NRAK-"}, measureSequence(alphanumericBytes, 27, 27)},
	{"age key", []string{"AGE-SECRET-KEY-1"}, measureSequence(alphanumericBytes, 58, 58)},
	{"JSON Web Token", []string{"eyJ"}, measureDotted(measureSequence(urlBytes, 10, 0), measureDotted(measurePrefixed("eyJ", measureSequence(urlBytes, 10, 0)), measureSequence(urlBytes, 20, 0)))},
	{"private key", []string{"-----BEGIN "}, measurePrivateKey},
}

// byteSet is a set of bytes.
type byteSet [256]bool

func newByteSet(chars string) *byteSet {
	var set byteSet
	for i := range len(chars) {
		set[chars[i]] = true
	}
	return &set
}

const (
	digits = "0123456789"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower  = "abcdefghijklmnopqrstuvwxyz"
)

var (
	alphanumericBytes = newByteSet(digits + upper + lower)
	wordBytes         = newByteSet(digits + upper + lower + "_")
	urlBytes          = newByteSet(digits + upper + lower + "_-")
	dashBytes         = newByteSet(digits + upper + lower + "-")
	pathBytes         = newByteSet(digits + upper + lower + "/")
	base64Bytes       = newByteSet(digits + upper + lower + "+/=")
	base32Bytes       = newByteSet("234567" + upper)
	hexBytes          = newByteSet(digits + "abcdefABCDEF")
)

// measureSequence measures a sequence of minLength to maxLength bytes of a set; maxLength 0 means no limit. It rejects
// placeholders: sequences of few different bytes, or with EXAMPLE at the end.
func measureSequence(set *byteSet, minLength, maxLength int) measure {
	return func(rest string) (length, skippable int) {
		n := 0
		for n < len(rest) && set[rest[n]] && (maxLength == 0 || n <= maxLength) {
			n++
		}
		switch {
		case maxLength > 0 && n > maxLength: // a token may begin further back
			return -1, 0
		case n < minLength, isPlaceholder(rest[:n]):
			return -1, n
		}
		return n, 0
	}
}

// minVaried is the smallest number of different bytes in a token.
const minVaried = 6

// isPlaceholder reports whether a token's body has too few different bytes, or says that it is an example.
func isPlaceholder(body string) bool {
	if strings.HasSuffix(body, "EXAMPLE") {
		return true
	}
	var seen byteSet
	different := 0
	for i := 0; i < len(body) && different < minVaried; i++ {
		if !seen[body[i]] {
			seen[body[i]] = true
			different++
		}
	}
	return different < minVaried
}

// measureDotted measures two parts with a dot between them.
func measureDotted(first, second measure) measure {
	return func(rest string) (length, skippable int) {
		n, skippable := first(rest)
		if n < 0 {
			return -1, skippable
		}
		if n >= len(rest) || rest[n] != '.' {
			return -1, n
		}
		m, _ := second(rest[n+1:])
		if m < 0 {
			return -1, n
		}
		return n + 1 + m, 0
	}
}

// measurePrefixed measures a prefix and the part after it, which inner measures.
func measurePrefixed(prefix string, inner measure) measure {
	return func(rest string) (length, skippable int) {
		if !strings.HasPrefix(rest, prefix) {
			return -1, 0
		}
		if n, _ := inner(rest[len(prefix):]); n >= 0 {
			return len(prefix) + n, 0
		}
		return -1, 0
	}
}

// maxKey bounds the search for the end of a private key, in bytes.
const maxKey = 16 << 10

// measurePrivateKey measures a PEM or OpenSSH private key after "-----BEGIN ". A key without an END line
// extends up to the first character that no key contains.
func measurePrivateKey(rest string) (length, skippable int) {
	line := rest[:min(len(rest), 64)]
	kind, _, ok := strings.Cut(line, "-----")
	if !ok || !strings.HasSuffix(kind, "PRIVATE KEY") && !strings.HasSuffix(kind, "PRIVATE KEY BLOCK") {
		return -1, 0
	}
	body := rest[len(kind)+len("-----") : min(len(rest), maxKey)]
	end := strings.Index(body, "-----END "+kind+"-----")
	if end < 0 {
		end = 0
		for end < len(body) && (base64Bytes[body[end]] || strings.IndexByte(" \\nr\r\n\t\"", body[end]) >= 0) {
			end++
		}
		if end < 64 { // too short for a key
			return -1, 0
		}
		return len(kind) + len("-----") + end, 0
	}
	if end < 40 { // too little text between the two lines
		return -1, 0
	}
	return len(kind) + len("-----") + end + len("-----END "+kind+"-----"), 0
}

// candidate is a prefix with its shape.
type candidate struct {
	prefix string
	shape  *shape
}

// prefixIndex contains the prefixes of all shapes, by their first three bytes.
var prefixIndex = func() (p gramIndex[candidate]) {
	for i := range shapes {
		for _, prefix := range shapes[i].prefixes {
			p.add(prefixNumber(prefix, 0), candidate{prefix, &shapes[i]})
		}
	}
	return p
}()

// prefixNumber returns three bytes of text as a number.
func prefixNumber(text string, at int) uint64 {
	return uint64(text[at]) | uint64(text[at+1])<<8 | uint64(text[at+2])<<16
}

// shapesIn returns the tokens of known shapes in text.
func shapesIn(text string) []span {
	var spans []span
	searchedTo := map[*shape]int{} // the offset before which no rest of a token begins
	for at := 0; at+3 <= len(text); at++ {
		head := prefixNumber(text, at)
		if !prefixIndex.filter.has(head) {
			continue
		}
		if s, ok := shapeAt(text, at, prefixIndex.byGram[head], searchedTo); ok {
			spans = append(spans, s)
			at = s.end - 1
		}
	}
	return spans
}

// shapeAt returns the token that begins at a position. searchedTo has, for each shape, the offset
// before which no rest of a token begins; it is updated.
func shapeAt(text string, at int, candidates []candidate, searchedTo map[*shape]int) (token span, ok bool) {
	if len(candidates) == 0 || !beginsToken(text, at) {
		return span{}, false
	}
	for _, c := range candidates {
		begin := at + len(c.prefix)
		if !strings.HasPrefix(text[at:], c.prefix) || begin < searchedTo[c.shape] {
			continue
		}
		n, skippable := c.shape.measure(text[begin:])
		if n >= 0 {
			return span{at, begin + n, secretMark(c.shape.name)}, true
		}
		searchedTo[c.shape] = max(searchedTo[c.shape], begin+skippable)
	}
	return span{}, false
}

// beginsToken reports whether a token may begin at a position: not inside a longer word. A dash at
// the beginning of a line may come from a diff.
func beginsToken(text string, at int) bool {
	if at == 0 {
		return true
	}
	before := text[at-1]
	if before == '-' {
		return at == 1 || strings.IndexByte("\n -", text[at-2]) >= 0 || text[at] == '-'
	}
	isEscape := at >= 2 && text[at-2] == '\\' && strings.IndexByte("nrt", before) >= 0
	return isEscape || !wordBytes[before]
}
