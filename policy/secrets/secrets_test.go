package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRedact(t *testing.T) {
	const key = "sk-test/0123+456=789"
	r := NewRedactor([]Value{{"OPENAI_API_KEY", key}, {"LONGER", key + "-and-more"}, {"EMPTY", ""}, {"PIN", "1234567"}})
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
	if got := r.Redact(key + "-and-more"); got != "[secret LONGER]" {
		t.Errorf("a value inside another: %q", got)
	}
	if got := r.Redact("the PIN is 1234567"); got != "the PIN is 1234567" {
		t.Errorf("a short value was searched: %q", got)
	}
	if diff := cmp.Diff([]string{"PIN"}, r.Short()); diff != "" {
		t.Errorf("Short (-want +got):\n%s", diff)
	}
	if got := (*Redactor)(nil).Redact("x"); got != "x" {
		t.Errorf("nil redactor: %q", got)
	}
}
