package job

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestFillsDefaultsOfSecrets(t *testing.T) {
	secret := func(s Secret) Secret {
		if s.Methods == nil {
			s.Methods = []string{"GET", "HEAD"}
		}
		if s.Commands == nil {
			s.Commands = []string{"setup"}
		}
		if s.From == "" {
			s.From = s.Name
		}
		if s.Hosts == nil {
			s.Hosts = []string{"a.example.com"}
		}
		return s
	}
	for written, want := range map[string]Secret{
		"{name: X, hosts: [a.example.com]}": secret(Secret{Name: "X", Header: "Authorization"}),
		"{name: X, hosts: [a.example.com], header: X-Key, methods: [POST], commands: [agent, verify]}": secret(Secret{Name: "X", Header: "X-Key", Methods: []string{"POST"}, Commands: []string{"agent", "verify"}}),
		"{name: X, hosts: [a.example.com], parameter: key}":                                            secret(Secret{Name: "X", Parameter: "key"}),
		"{name: X, from: ~/token, hosts: ['a.example.com:8443/b/']}":                                   secret(Secret{Name: "X", From: "~/token", Hosts: []string{"a.example.com:8443/b/"}, Header: "Authorization"}),
		"{name: X, hosts: [10.0.0.5/b], private: true, ca: /etc/corp.pem}":                             secret(Secret{Name: "X", Hosts: []string{"10.0.0.5/b"}, Private: true, CA: "/etc/corp.pem", Header: "Authorization"}),
		"{name: X, preset: npm, hosts: [a.example.com]}":                                               secret(Secret{Name: "X", Preset: "npm", Header: "Authorization"}),
		"{name: X, preset: pypi, hosts: [a.example.com]}":                                              secret(Secret{Name: "X", Preset: "pypi", Header: "Authorization", User: "__token__"}),
		"{name: X, preset: goproxy, hosts: [a.example.com], user: me}":                                 secret(Secret{Name: "X", Preset: "goproxy", Header: "Authorization", User: "me"}),
		"{name: X, preset: git, hosts: [a.example.com]}":                                               secret(Secret{Name: "X", Preset: "git", Header: "Authorization", User: "x-access-token", Methods: []string{}}),
		"{name: CARGO_REGISTRY_TOKEN, preset: cargo, hosts: [a.example.com]}":                          secret(Secret{Name: "CARGO_REGISTRY_TOKEN", Preset: "cargo", Header: "Authorization"}),
		"{name: X, preset: maven, server: s, hosts: [a.example.com]}":                                  secret(Secret{Name: "X", Preset: "maven", Header: "Authorization", User: "agent-ci", Server: "s"}),
	} {
		must.Same(t, []Secret{want}, mustLoad(t, jobFile(start+"policy: {secrets: ["+written+"]}\n")).Policy.Secrets, written)
	}
}

func TestRefusesInvalidSecrets(t *testing.T) {
	const good = "{name: X, hosts: [a.example.com]}"
	for secrets, want := range map[string]string{
		"{hosts: [a.example.com]}":                         "policy.secrets[0].name: is missing",
		"{name: X}":                                        "policy.secrets[0].hosts: is missing",
		"{name: X, hosts: []}":                             "policy.secrets[0].hosts: is an empty list; give at least one",
		"{name: a-b, hosts: [a.example.com]}":              "policy.secrets[0].name: must be a variable's name",
		"{name: PATH, hosts: [a.example.com]}":             "PATH is a variable that has another meaning for commands",
		"{name: https_proxy, hosts: [a.example.com]}":      "https_proxy is a variable that has another meaning for commands",
		"{name: GIT_CONFIG_KEY_0, hosts: [a.example.com]}": "GIT_CONFIG_KEY_0 is a variable",

		good + ", " + good:                         "policy.secrets[1].name: X is also the name of another secret",
		good + "], env: {set: {X: y}}, protect: [": "X is also set by policy.env.set",
		good + "], env: {pass: [X]}, protect: [":   "X is also in policy.env.pass",

		"{name: X, from: Y, hosts: [a.example.com]}], env: {pass: [Y]}, protect: [": "policy.secrets[0].from: Y is also in policy.env.pass",

		good + "], network: full, protect: [": "policy.network: is full, where no proxy",
		good + "], network: none, protect: [": "policy.network: is none, where no proxy",

		"{name: X, from: 'sk-value', hosts: [a.example.com]}":                      "never the value itself",
		"{name: X, from: a/b, hosts: [a.example.com]}":                             "files of a repository are not secret",
		"{name: X, from: /a/../b, hosts: [a.example.com]}":                         "without //, ./ and ../",
		"{name: X, hosts: [10.0.0.5]}":                                             "policy.secrets[0].hosts: has 10.0.0.5, which is a private address; give the secret private: true",
		"{name: X, hosts: [127.0.0.1], private: true}":                             "is a loopback address, which no list opens",
		"{name: X, hosts: [169.254.169.254], private: true}":                       "is a link-local address, which no list opens",
		"{name: X, hosts: ['*.example.com']}":                                      "policy.secrets[0].hosts[0]: has a wildcard",
		"{name: X, hosts: ['https://a.example.com']}":                              "policy.secrets[0].hosts[0]: is written without https://",
		"{name: X, hosts: [a.example.com], parameter: k, header: Y}":               "policy.secrets[0].parameter: is given beside header",
		"{name: X, hosts: [a.example.com], header: ''}":                            "policy.secrets[0].header: must not be empty",
		"{name: X, hosts: [a.example.com], header: Host}":                          "policy.secrets[0].header: is Host, a header that servers",
		"{name: X, hosts: [a.example.com], user: me}":                              "policy.secrets[0].user: needs a preset",
		"{name: X, hosts: [a.example.com], server: s}":                             "policy.secrets[0].server: needs a preset",
		"{name: X, hosts: [a.example.com], methods: []}":                           "policy.secrets[0].methods: names no method",
		"{name: X, hosts: [a.example.com], methods: [get]}":                        "policy.secrets[0].methods[0]: must be a method of HTTP in capitals",
		"{name: X, hosts: [a.example.com], methods: [CONNECT]}":                    "is CONNECT, a method that never carries a credential",
		"{name: X, hosts: [a.example.com], methods: [TRACE]}":                      "is TRACE, a method that never carries a credential",
		"{name: X, hosts: [a.example.com], commands: []}":                          "policy.secrets[0].commands: is an empty list; give at least one",
		"{name: X, hosts: [a.example.com], commands: [services]}":                  "policy.secrets[0].commands[0]: \"services\" is not one of agent, setup, verify",
		"{name: X, hosts: [a.example.com], preset: yarn}":                          `"yarn" is not one of`,
		"{name: X, hosts: [a.example.com], preset: npm, header: X-Key}":            "policy.secrets[0].header: is set by preset: npm",
		"{name: X, hosts: [a.example.com], preset: npm, parameter: k}":             "policy.secrets[0].parameter: is set by preset: npm",
		"{name: X, hosts: [a.example.com], preset: npm, parameter: Authorization}": "policy.secrets[0].parameter: is set by preset: npm",
		"{name: X, hosts: [a.example.com], preset: npm, user: me}":                 "policy.secrets[0].user: does not go with preset: npm",
		"{name: X, hosts: [a.example.com], preset: git, methods: [GET]}":           "policy.secrets[0].methods: is set by preset: git",
		"{name: X, hosts: [a.example.com], preset: maven}":                         "policy.secrets[0].server: is missing",
		"{name: X, hosts: [a.example.com], preset: pypi, server: s}":               "policy.secrets[0].server: needs preset: maven",
		"{name: X, hosts: [a.example.com], preset: pypi, user: 'a:b'}":             "policy.secrets[0].user: must be a user's name without a colon",
		"{name: X, hosts: [a.example.com], preset: cargo}":                         "must be CARGO_REGISTRY_TOKEN or CARGO_REGISTRIES_…_TOKEN",
		"{name: X, hosts: [a.example.com], values: 1}":                             "policy.secrets[0].values: unknown key",

		presetFor("X", "npm", "a.example.com/b") + ", " + presetFor("Y", "npm", "a.example.com/b/"):   "policy.secrets[1].preset: uses the same place in npm's configuration as policy.secrets[0]: //a.example.com/b/",
		presetFor("X", "pypi", "a.example.com/b") + ", " + presetFor("Y", "goproxy", "a.example.com"): "policy.secrets[1].preset: uses the same place in the netrc file as policy.secrets[0]: machine a.example.com",
		presetFor("X", "git", "a.example.com/b") + ", " + presetFor("Y", "git", "a.example.com/b"):    "uses the same place in git's configuration",
	} {
		wantProblem(t, "policy: {secrets: ["+secrets+"]}", want)
	}
}

// What follows from a mistake is not told beside it.
func TestReportsSecretMistakeOnce(t *testing.T) {
	for _, secrets := range []string{
		"{name: X}", "{name: X, hosts: a.example.com}", "{name: X, hosts: [a.example.com], preset: yarn, server: s, user: u}",
		"{name: X, hosts: [a.example.com], user: 'a:b'}", "{name: NETRC, hosts: [a.example.com], preset: cargo}",
	} {
		must.Same(t, 1, len(problemLines(t, jobFile(start+"policy: {secrets: ["+secrets+"]}\n"))), secrets, "is told")
	}
}

func presetFor(name, preset, host string) string {
	return "{name: " + name + ", preset: " + preset + ", hosts: ['" + host + "']}"
}

// Secrets that other commands have are in other files.
func TestAcceptsSamePresetForDistinctScopes(t *testing.T) {
	mustLoad(t, jobFile(start+"policy: {secrets: [{name: X, preset: npm, hosts: [a.example.com]}, {name: Y, preset: npm, hosts: [a.example.com], commands: [agent]}]}\n"))
	mustLoad(t, jobFile(start+"policy: {secrets: [{name: X, preset: npm, hosts: [a.example.com/a]}, {name: Y, preset: npm, hosts: [a.example.com/b]}]}\n"))
}

func TestBoundsNumberOfSecrets(t *testing.T) {
	var all strings.Builder
	for i := range maxSecrets + 1 {
		all.WriteString("{name: X" + strings.Repeat("Y", i) + ", hosts: [a.example.com]}, ")
	}
	wantProblem(t, "policy: {secrets: ["+all.String()+"]}", "policy.secrets: has more than 32")
}
