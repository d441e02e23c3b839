package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRedact(t *testing.T) {
	const key = "sk-test/0123+456=789"
	r := NewRedactor([]Value{{"OPENAI_API_KEY", key}, {"LONGER", key + "-and-more"}, {"EMPTY", ""}, {"PIN", "1234567"}, {"PIN", "1234567"}, {"PASTED", "a-pasted-key\n"}})
	for name, form := range map[string]string{
		"plain":          key,
		"base64":         base64.StdEncoding.EncodeToString([]byte(key)),
		"base64 for URL": base64.RawURLEncoding.EncodeToString([]byte(key)),
		"hex":            hex.EncodeToString([]byte(key)),
		"upper-case hex": strings.ToUpper(hex.EncodeToString([]byte(key))),
		"URL":            url.QueryEscape(key),
	} {
		t.Run(name, func(t *testing.T) {
			got := r.Redact("a " + form + " b")
			if strings.Contains(got, form) || !strings.HasPrefix(got, "a [secret OPENAI_API_KEY]") || !strings.HasSuffix(got, " b") {
				t.Errorf("Redact = %q", got)
			}
		})
	}
	must.Same(t, "[secret LONGER]", r.Redact(key+"-and-more"), "a value inside another")
	must.Same(t, "[secret PASTED], ", r.Redact("a-pasted-key, "), "a value that ends in a line break")
	must.Same(t, "the PIN is 1234567", r.Redact("the PIN is 1234567"), "a short value was searched")
	must.Same(t, []string{"PIN"}, r.Short(), "Short")
	must.Same(t, "x", (*Redactor)(nil).Redact("x"), "nil redactor")
}

func TestFindsValuesAcrossReads(t *testing.T) {
	secret := "s3cr3t-value-of-the-key"
	r := NewRedactor([]Value{{Name: "KEY", Secret: secret}, {Name: "OTHER", Secret: "another-secret"}})
	for _, before := range []int{0, 64<<10 - 5, 64<<10 + 1, 200_000} {
		text := strings.Repeat("x", before) + secret + strings.Repeat("y", 100_000)
		must.Same(t, []string{"KEY"}, must.Get(r.FindNew(strings.NewReader(text), nil))(t), before)
	}
	must.None(t, must.Get(r.FindNew(strings.NewReader(strings.Repeat(secret[:10], 30_000)), nil))(t), "found", "in text without the value")
}

func TestRedactFindsBase64AtEveryPlace(t *testing.T) {
	const secret = "ghs_0123456789abcdefghijklmnopqrstuvwx"
	r := NewRedactor([]Value{{"GITHUB_TOKEN", secret}})
	for before := range 6 {
		for after := range 4 {
			text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret + strings.Repeat("y", after)))
			if got := r.Redact(text); !strings.Contains(got, "[secret GITHUB_TOKEN]") || len(got) > len(text) {
				t.Errorf("%d bytes before and %d after: %s stays %s", before, after, text, got)
			}
		}
	}
}
