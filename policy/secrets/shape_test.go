package secrets

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// body is text of a length that looks like the random part of a token. Tokens
// in these tests are put together so that no scanner takes this file for a leak.
func body(alphabet string, length int) string {
	var b strings.Builder
	for i := range length {
		b.WriteByte(alphabet[(i*7+i/len(alphabet)*3+5)%len(alphabet)])
	}
	return b.String()
}

const (
	hexAlphabet  = "0123456789abcdef"
	wordAlphabet = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0xL"
)

var tokens = map[string][]string{
	"GitHub token":              {"ghp_" + body(wordAlphabet, 36), "ghs_" + body(wordAlphabet, 40)},
	"GitHub fine-grained token": {"github_pat_" + body(wordAlphabet, 22) + "_" + body(wordAlphabet, 59)},
	"GitLab token":              {"glpat-" + body(wordAlphabet, 20)},
	"OpenAI key":                {"sk-proj-" + body(wordAlphabet+"-_", 120)},
	"Anthropic key":             {"sk-ant-" + "api03-" + body(wordAlphabet+"-_", 95)},
	"API key":                   {"sk-" + body(wordAlphabet, 48)},
	"AWS access key ID":         {"AKIA" + body("ABCDEFGHIJ234567", 16), "ASIA" + body("QRSTUVWXYZ234567", 16)},
	"AWS Bedrock key":           {"ABSK" + body(wordAlphabet+"+/", 110)},
	"Google API key":            {"AIza" + body(wordAlphabet+"-", 35)},
	"Google OAuth secret":       {"GOCSPX-" + body(wordAlphabet, 28)},
	"Google OAuth token":        {"ya29." + body(wordAlphabet, 60)},
	"Azure storage key":         {"AccountKey=" + body(wordAlphabet+"+/", 86) + "=="},
	"Slack token":               {"xoxb-" + "123456789012-" + body(wordAlphabet, 24)},
	"Slack webhook":             {"https://hooks.slack.com/services/" + "T01234567/B01234567/" + body(wordAlphabet, 24)},
	"npm token":                 {"npm_" + body(wordAlphabet, 36)},
	"PyPI token":                {"pypi-AgEIcHlwaS5vcmc" + body(wordAlphabet, 70)},
	"RubyGems key":              {"rubygems_" + body(hexAlphabet, 48)},
	"crates.io token":           {"cio" + body(wordAlphabet, 32)},
	"Docker Hub token":          {"dckr_pat_" + body(wordAlphabet, 27)},
	"Hugging Face token":        {"hf_" + body(wordAlphabet, 34)},
	"Stripe key":                {"sk_live_" + body(wordAlphabet, 24), "whsec_" + body(wordAlphabet, 32)},
	"SendGrid key":              {"SG." + body(wordAlphabet, 22) + "." + body(wordAlphabet, 43)},
	"DigitalOcean token":        {"dop_v1_" + body(hexAlphabet, 64)},
	"Vault token":               {"hvs." + body(wordAlphabet, 90)},
	"Shopify token":             {"shpat_" + body(hexAlphabet, 32)},
	"Databricks token":          {"dapi" + body(hexAlphabet, 32)},
	"Linear key":                {"lin_api_" + body(wordAlphabet, 40)},
	"Atlassian token":           {"ATATT3xFfGF0" + body(wordAlphabet, 100)},
	"Grafana token":             {"glsa_" + body(wordAlphabet, 32) + "_" + body(hexAlphabet, 8)},
	"New Relic key":             {"NRAK-" + body(wordAlphabet, 27)},
	"age key":                   {"AGE-SECRET-KEY-1" + body("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)},
	"JSON Web Token":            {"eyJ" + body(wordAlphabet, 20) + ".eyJ" + body(wordAlphabet, 60) + "." + body(wordAlphabet+"-_", 43)},
	"private key": {
		"-----BEGIN " + "RSA PRIVATE KEY-----\n" + body(wordAlphabet, 64) + "\n" + body(wordAlphabet, 30) + "\n-----END RSA PRIVATE KEY-----",
		"-----BEGIN " + "PRIVATE KEY-----\\n" + body(wordAlphabet, 64) + "\\n-----END PRIVATE KEY-----",
		"-----BEGIN " + "OPENSSH PRIVATE KEY-----\n" + body(wordAlphabet, 70) + "\n" + body(wordAlphabet, 70),
	},
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		if len(tokens[s.name]) == 0 {
			t.Errorf("%s has no test", s.name)
		}
	}
	r := NewRedactor(nil)
	for name, list := range tokens {
		for _, token := range list {
			for _, around := range [][2]string{
				{"", ""}, {"a ", " b"}, {"TOKEN=", "\n"}, {`"`, `",`}, {"https://x:", "@host"}, {"(", ")."}, {"\n+", "\n"}, {"\n-", "\n"}, {`\n`, `\n"`}, {"`", "`"}, {"é", "é"},
			} {
				text := around[0] + token + around[1]
				want := around[0] + "[secret " + name + "]" + around[1]
				if got := r.Redact(text); got != want && !strings.HasSuffix(token, body(wordAlphabet, 70)) {
					t.Errorf("Redact(%q) = %q, want %q", text, got, want)
				}
			}
			found := must.Get(r.FindNew(strings.NewReader(strings.Repeat("x\n", 40_000)+token+"\n"), nil))(t)
			must.Same(t, []string{name}, found)
		}
	}
}

func TestIgnoresSimilarText(t *testing.T) {
	r := NewRedactor(nil)
	for name, text := range map[string]string{
		"too short":             "ghp_" + body(wordAlphabet, 10) + " sk-learn sk-proj-x npm_config_cache hf_hub",
		"within a word":         "xghp_" + body(wordAlphabet, 36) + " _AKIA" + body("ABCDEFGHIJ234567", 16),
		"within a dashed word":  "task-" + body(wordAlphabet, 40) + " disk-proj-" + body(wordAlphabet, 40) + " x-sk-" + body(wordAlphabet, 40),
		"a placeholder":         "ghp_" + strings.Repeat("x", 36) + " sk-" + strings.Repeat("0", 48) + " AKIAIOSFODNN7EXAMPLE",
		"too long":              "AKIA" + body("ABCDEFGHIJ234567", 17) + " AIza" + body(wordAlphabet, 36),
		"a public key":          "-----BEGIN PUBLIC KEY-----\n" + body(wordAlphabet, 64) + "\n-----END PUBLIC KEY-----",
		"the lines of a key":    "-----BEGIN " + "PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
		"only the first line":   "-----BEGIN " + "PRIVATE KEY-----",
		"the head of a token":   "eyJ" + body(wordAlphabet, 30) + " eyJ" + body(wordAlphabet, 30) + "." + body(wordAlphabet, 30) + "." + body(wordAlphabet, 30),
		"a hash":                body(hexAlphabet, 64),
		"a module's sum":        "h1:" + body(wordAlphabet, 43) + "=",
		"words of these pieces": "dapifoo ciority SG.x ya29. hvs.x AccountKey= cio-x",
	} {
		must.Same(t, text, r.Redact(text), name)
	}
}

func TestFindNewIgnoresMovedSecrets(t *testing.T) {
	moved, added := tokens["npm token"][0], tokens["GitLab token"][0]
	r := NewRedactor([]Value{{"KEY", "the-value-of-the-key"}})
	found := must.Get(r.FindNew(strings.NewReader("a "+moved+"\n"+added+" the-value-of-the-key"), strings.NewReader("b\n"+moved+" the-value-of-the-key")))(t)
	must.Same(t, []string{"GitLab token", "KEY"}, found)
}

func TestFragments(t *testing.T) {
	const secret = "Zq7-first-Xw29-second-Lk44-third"
	r := NewRedactor([]Value{{"KEY", secret}, {"SHORT", "abcdefghij012345678"}})
	for _, test := range []struct{ name, text, want string }{
		{"whole", "a " + secret + " b", "a [secret KEY] b"},
		{"without its beginning", "a " + secret[7:] + " b", "a [part of secret KEY] b"},
		{"without its end", "a " + secret[:15] + " b", "a [part of secret KEY] b"},
		{"the middle", "a" + secret[9:21] + "b", "a[part of secret KEY]b"},
		{"too short", secret[9:20], secret[9:20]},
		{"of a value under 20 characters", "abcdefghij01234567", "abcdefghij01234567"},
		{"two", secret[1:14] + " " + secret[15:31], "[part of secret KEY] [part of secret KEY]"},
		{"reversed", "driht-44kL-dnoces", "driht-44kL-dnoces"},
	} {
		for shift := range 6 {
			pad := strings.Repeat(".", shift)
			must.Same(t, pad+test.want, r.Redact(pad+test.text), test.name, pad+test.text)
		}
	}
	must.None(t, must.Get(r.FindNew(strings.NewReader(secret[7:]), nil))(t), "a fragment stops a publish")
	r.ExemptPublic(func(fragment string) bool { return fragment == secret[7:] })
	must.Same(t, secret[7:]+" [part of secret KEY]", r.Redact(secret[7:]+" "+secret[8:]), "with what stands elsewhere")
}

func TestRedactKeepsPublicPrefixes(t *testing.T) {
	for name, text := range map[string]string{
		"the prefix of a token":  "github_pat_11ABCDE",
		"the header of a JWT":    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
		"the first line of keys": "-----BEGIN OPENSSH PRIVATE KEY-----\n",
		"a scheme":               "Bearer sk-proj-",
		"a URL's":                "https://hooks.",
	} {
		secret := text + body(wordAlphabet, 50)
		if name == "the prefix of a token" {
			secret = "github_pat_" + body(wordAlphabet, 70)
			text = "github_pat_ is what they begin with"
		}
		r := NewRedactor([]Value{{"KEY", secret}})
		must.Same(t, "see "+text, r.Redact("see "+text), name)
	}
}

func FuzzRedact(f *testing.F) {
	for _, list := range tokens {
		f.Add(list[0], 3)
	}
	f.Add("Zq7-first-Xw29-second-Lk44-third", 2)
	const secret = "Zq7-first-Xw29-second-Lk44-third"
	r := NewRedactor([]Value{{"KEY", secret}})
	f.Fuzz(func(t *testing.T, text string, cut int) {
		got := r.Redact(text)
		must.Same(t, false, strings.Contains(got, secret), got, "still holds the value")
		for at := 0; at+minFragment <= len(secret); at++ {
			must.Lack(t, got, secret[at:at+minFragment])
		}
		if at := max(0, min(cut, len(text))); !strings.Contains(r.Redact(text[:at]+" "+secret+" "+text[at:]), "[secret ") {
			t.Errorf("the value is missed in %q", text)
		}
	})
}

// ordinary is a mebibyte of text as commands print it.
func ordinary() string {
	const line = "ok  \tgithub.com/example/project/package\t0.123s coverage: 81.2% of statements; func (r *Reader) skip(args []Word) error { return nil }\n"
	return strings.Repeat(line, 1<<20/len(line))
}

func BenchmarkRedact(b *testing.B) {
	values := make([]Value, 0, 6)
	for name, list := range tokens {
		if len(values) < 6 {
			values = append(values, Value{name, list[0]})
		}
	}
	text := ordinary()
	for name, r := range map[string]*Redactor{"shapes": NewRedactor(nil), "values": NewRedactor(values)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Redact(text)
			}
		})
	}
	b.Run("replacer", func(b *testing.B) { // what an exact search alone costs
		r := NewRedactor(values)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r.replacer.Replace(text)
		}
	})
}

// What looks like the beginning of a token again and again is measured once, and hides none behind.
func TestTokenPrefixesTakeLinearTime(t *testing.T) {
	looked := 0 // bytes that were measured
	for i := range shapes {
		of := shapes[i].measure
		shapes[i].measure = func(rest string) (int, int) {
			length, skippable := of(rest)
			looked += max(length, skippable)
			return length, skippable
		}
		t.Cleanup(func() { shapes[i].measure = of })
	}
	secret := randomTexts()(word, 40)
	for _, test := range []struct{ text, want string }{
		{strings.Repeat("--eyJ", 20_000), ""},
		{strings.Repeat("--sk-ant-", 20_000) + "EXAMPLE", ""},
		{"hvs.short--hvs." + secret, "hvs.short--[secret Vault token]"},
		{strings.Repeat("--eyJ", 1000) + " ghp_" + secret, strings.Repeat("--eyJ", 1000) + " [secret GitHub token]"},
	} {
		looked = 0
		got := new(Redactor).Redact(test.text)
		want := test.want
		if want == "" {
			want = test.text
		}
		if got != want || looked > 2*len(test.text) {
			t.Errorf("%.40s…: %d bytes were measured, got %.60s… of %d bytes", test.text, looked, got, len(got))
		}
	}
}
