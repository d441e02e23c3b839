package policy

import "strings"

// secretParts lists the parts of names, separated by underscores, of variables with credentials.
var secretParts = wordSet("TOKEN TOKENS SECRET SECRETS PASSWORD PASSWD PASSPHRASE PWD PASS KEY APIKEY CREDENTIAL CREDENTIALS AUTH AUTHORIZATION COOKIE PAT")

// HoldsSecret says whether a variable, or a header with underscores for its
// dashes, holds a credential by its name. Folders and plain URLs are no
// credentials, whatever they are called.
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
