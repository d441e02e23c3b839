package guard

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRecognisesCredentialsInConfiguration(t *testing.T) {
	for _, test := range []struct {
		name, config string
		kept         bool
	}{
		{"a header", "[http]\n\textraheader = hunter22\n", false},
		{"a password of mail", "[sendemail]\n\tsmtpPass = hunter22\n", false},
		{"the password of imap-send", "[imap]\n\tpass = hunter22\n", false},
		{"a key of somebody's API", "[tool]\n\tapiKey = hunter22\n", false},
		{"a secret", "[tool \"x\"]\n\tclientSecret = hunter22\n", false},
		{"a proxy without a scheme", "[remote \"x\"]\n\tproxy = user:hunter22@proxy.example.com:80\n", false},
		{"a proxy", "[remote \"x\"]\n\tproxy = http://hunter22.example.com\n", true},
		{"a key to sign with", "[user]\n\tsigningkey = hunter22\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			cleaned, _, err := withoutCredentials([]byte(test.config))
			must.Do(t, err)
			must.Same(t, test.kept, cleaned == nil || strings.Contains(string(cleaned), "hunter22"), "of it is left", cleaned)
		})
	}
}
