package policy

import "strings"

// secretNameWords lists words that mark the name of a variable with a credential. Underscores separate
// the words of a name.
var secretNameWords = wordSet("TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASSPHRASE PWD PASS KEY APIKEY CREDENTIAL CREDENTIALS AUTH AUTHORIZATION COOKIE PAT")

// NamesSecret reports whether a variable or header holds a credential, judged by its name. Absolute paths and
// URLs without password are no credentials.
func NamesSecret(name, value string) bool {
	isPlainURL := strings.Contains(value, "://") && !urlUserinfo().MatchString(value)
	if isPlainURL || strings.HasPrefix(value, "/") {
		return false
	}
	for part := range strings.SplitSeq(strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "_") {
		if secretNameWords[part] && name != "PWD" && name != "OLDPWD" {
			return true
		}
	}
	return false
}
