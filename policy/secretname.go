package policy

import "strings"

// secretParts lists words that mark the name of a variable with a credential. Underscores separate
// the words of a name.
var secretParts = wordSet("TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASSPHRASE PWD PASS KEY APIKEY CREDENTIAL CREDENTIALS AUTH AUTHORIZATION COOKIE PAT")

// HoldsSecret reports whether a variable or header holds a credential, judged by its name. Absolute paths and
// URLs without password are no credentials.
func HoldsSecret(name, value string) bool {
	if strings.HasPrefix(value, "/") || strings.Contains(value, "://") && !userinfo.MatchString(value) {
		return false
	}
	for part := range strings.SplitSeq(strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "_") {
		if secretParts[part] && name != "PWD" && name != "OLDPWD" {
			return true
		}
	}
	return false
}
