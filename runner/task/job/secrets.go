package job

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// Secret is a credential that commands use without seeing it. They get a placeholder, and the proxy
// replaces it by the value in requests to Hosts.
type Secret struct {
	Name      string   `json:"name" config:"required,nonempty" form:"variable" about:"Variable in which commands find the placeholder."`
	From      string   `json:"from" form:"secret_source" about:"Where the value is: a variable, or a file with one line if it contains a slash. Empty: the variable called name."`
	Preset    string   `json:"preset" values:"|npm|pypi|goproxy|git|cargo|maven" about:"Client whose configuration gets the placeholder: npm, pypi, goproxy, git, cargo, maven. Empty: none."`
	Hosts     []string `json:"hosts" config:"required,nonempty" form:"secret_host" most:"max_scopes" example:"[npm.example.com, 'git.example.com:8443/team']" about:"Hosts that get the value, by https, optionally with a port and the start of a path. Commands that get the secret may reach them."`
	Private   bool     `json:"private" about:"true: the hosts may have private addresses."`
	CA        string   `json:"ca" form:"rules_file" about:"File with the hosts' certificate authorities: in the base commit, or absolute. Empty: those of the machine."`
	Header    string   `json:"header" form:"header_name" default:"Authorization" about:"Header with the value: whole, after a scheme such as Bearer, or as user or password of Basic authentication."`
	Parameter string   `json:"parameter" form:"parameter" about:"Query parameter with the value, in place of header."`
	User      string   `json:"user" form:"basic_user" about:"User name beside the value, for the presets pypi, goproxy, maven and git, which each have a default."`
	Methods   []string `json:"methods" form:"method" default:"[GET, HEAD]" example:"[GET, POST]" about:"Request methods that may carry the value. The preset git sets its own."`
	Commands  []string `json:"commands" config:"nonempty" values:"agent|setup|verify" default:"[setup]" about:"Commands that get the placeholder: those of setup, agent or verify."`
	Server    string   `json:"server" form:"server_id" about:"Id of the server in Maven's settings, which pom.xml uses. The preset maven needs it."`
}

// The kinds of commands with access to secrets.
const (
	CommandsAgent  = "agent"
	CommandsSetup  = "setup"
	CommandsVerify = "verify"
)

// The clients with generated files for secrets.
const (
	PresetNPM     = "npm"
	PresetPyPI    = "pypi"
	PresetGoProxy = "goproxy"
	PresetGit     = "git"
	PresetCargo   = "cargo"
	PresetMaven   = "maven"
)

// FromFile reports whether the value is in a file instead of a variable.
func (s Secret) FromFile() bool { return strings.Contains(s.From, "/") }

// IsForCommands reports whether a kind of commands has access to the secret.
func (s Secret) IsForCommands(commands string) bool { return slices.Contains(s.Commands, commands) }

// AllowedHosts returns the hosts as entries of a network list, without invalid ones.
func (s Secret) AllowedHosts() []AllowedHost {
	entries := make([]AllowedHost, 0, len(s.Hosts))
	for _, text := range s.Hosts {
		if scope, err := credential.ParseScope(text); err == nil {
			entries = append(entries, AllowedHost{Host: scope.Host.Host(), Private: s.Private, CA: s.CA})
		}
	}
	return entries
}

const (
	maxSecrets = 32
	maxScopes  = 100 // for each secret
)

// checkSecretFrom requires the name of a variable, or the path of a file, absolute or below ~/.
func checkSecretFrom(s string) error {
	switch {
	case !strings.Contains(s, "/"):
		if form.Variable.Check(s) != nil {
			return errors.New("must be the name of a variable, or a file with an absolute path or one below ~/; never the value itself")
		}
		return nil
	case !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~/"):
		return errors.New("must be a file with an absolute path or one below ~/; files of a repository are not secret")
	case path.Clean(s) != s:
		return errors.New("must be a path without //, ./ and ../, and not with / at its end")
	}
	return form.OneLine.Check(s)
}

// checkMethod requires an HTTP method that may carry a credential.
func checkMethod(s string) error {
	switch {
	case !form.CompileFullMatch(`[A-Z][A-Z-]{0,31}`).MatchString(s):
		return errors.New("must be a method of HTTP in capitals, such as GET")
	case s == "CONNECT" || s == "TRACE":
		return errors.New("is " + s + ", a method that never carries a credential")
	}
	return nil
}

// presetUsers maps presets to the default user that the client sends beside the secret; "" for none.
var presetUsers = map[string]string{
	PresetNPM:     "",
	PresetPyPI:    "__token__",
	PresetGoProxy: "agent-ci",
	PresetGit:     "x-access-token",
	PresetCargo:   "",
	PresetMaven:   "agent-ci",
}

// reservedVariables lists variables of agent-ci, and variables with influence on what commands run.
var reservedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "IFS", "ENV", "BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "TMPDIR", "TMP", "TEMP", "TERM", "CI",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
	"AWS_CA_BUNDLE", "DENO_CERT", "BUNDLE_SSL_CA_CERT", "NPM_CONFIG_CAFILE", "JAVA_TOOL_OPTIONS",
	"NPM_CONFIG_USERCONFIG", "NETRC", "GIT_CONFIG_COUNT", "SERVICE_DATA", "SERVICE_PORT",
}

func isReservedVariable(name string) bool {
	upper := strings.ToUpper(name)
	return slices.Contains(reservedVariables, upper) || strings.HasPrefix(upper, "GIT_CONFIG_") || strings.HasPrefix(upper, "AGENT_CI_")
}

// checkSecrets checks the keys of every secret, and fills in the values set by its preset.
func (d *validator) checkSecrets() {
	all, mode := d.job.Policy.Secrets, d.job.Policy.Network.Mode
	if len(all) == 0 {
		return
	}
	d.reportEach("policy", mistake{mode == "none" || mode == "full", "network", "is " + mode + ", where no proxy puts the secrets of policy.secrets into requests; give loopback, or a list of hosts"})
	for i := range all {
		d.checkSecret(config.JoinPath("policy.secrets", i), &all[i], all[:i])
	}
	for i := range all {
		d.checkClientFileConflicts(i)
	}
}

// checkSecret checks one secret. before holds the secrets listed before it.
func (d *validator) checkSecret(place string, s *Secret, before []Secret) {
	s.From = cmp.Or(s.From, s.Name)
	d.checkSecretName(place, *s, before)
	for _, entry := range s.AllowedHosts() {
		_, err := entry.reachList()
		_, errPrivate := reach.ParsePrivate(entry.Host)
		if err != nil && errPrivate == nil {
			err = errors.New("is a private address; give the secret private: true")
		}
		d.reportEach(place, mistake{err != nil, "hosts", fmt.Sprintf("has %s, which %v", entry.Host, err)})
	}
	if user, isPreset := presetUsers[s.Preset]; isPreset {
		d.checkPreset(place, s, user)
	} else if !d.HasProblemBelow(config.JoinPath(place, "preset")) { // otherwise its allowed keys are unknown
		d.checkRequestPlace(place, s)
	}
	d.reportEach(place, mistake{len(s.Methods) == 0 && s.Preset != PresetGit, "methods", "names no method"})
}

// checkSecretName rejects a name whose variable has another meaning or value for commands.
func (d *validator) checkSecretName(place string, s Secret, before []Secret) {
	env := d.job.Policy.Env
	_, set := env.Set[s.Name]
	isPassed := func(name string) bool { return slices.Contains(env.Pass, name) }
	d.reportFirst(place,
		mistake{isReservedVariable(s.Name), "name", s.Name + " is a variable that has another meaning for commands; choose another"},
		mistake{set, "name", s.Name + " is also set by policy.env.set"},
		mistake{isPassed(s.Name), "name", s.Name + " is also in policy.env.pass, so commands would see its value"},
		mistake{s.Name != "" && slices.ContainsFunc(before, func(other Secret) bool { return other.Name == s.Name }), "name", s.Name + " is also the name of another secret"})
	d.reportEach(place, mistake{!s.FromFile() && isPassed(s.From) && s.From != s.Name, "from", s.From + " is also in policy.env.pass, so commands would see its value"})
}

// checkPreset fills in the values set by the preset's client, and rejects others. Every client sends
// the secret in the Authorization header.
func (d *validator) checkPreset(place string, s *Secret, user string) {
	isSet := "is set by preset: " + s.Preset + "; remove it"
	d.reportEach(place,
		mistake{s.Header != "" && !strings.EqualFold(s.Header, headerAuthorization), "header", isSet},
		mistake{s.Parameter != "", "parameter", isSet},
		mistake{s.Preset == PresetGit && d.IsSet(config.JoinPath(place, "methods")) && len(s.Methods) > 0, "methods", "is set by preset: git, which allows fetches and nothing else; remove it"})
	d.reportFirst(place,
		mistake{s.User != "" && user == "", "user", "does not go with preset: " + s.Preset + ", whose client sends no user; remove it"},
		mistake{s.Server != "" && s.Preset != PresetMaven, "server", "needs preset: maven"},
		mistake{s.Server == "" && s.Preset == PresetMaven, "server", "is missing; give the id of the repository in pom.xml"},
		mistake{s.Preset == PresetCargo && s.Name != "" && !form.CompileFullMatch(`CARGO_REGISTRY_TOKEN|CARGO_REGISTRIES_[A-Z0-9_]+_TOKEN`).MatchString(s.Name), "name", "must be CARGO_REGISTRY_TOKEN or CARGO_REGISTRIES_…_TOKEN with preset: cargo, which cargo reads"})
	if s.Preset == PresetGit {
		s.Methods = []string{}
	}
	s.Header, s.Parameter, s.User = headerAuthorization, "", cmp.Or(s.User, user)
}

// headerAuthorization is the default header for credentials.
const headerAuthorization = "Authorization"

// checkRequestPlace checks the place of the value in a request, for a secret without a preset: a header or a
// parameter. A parameter removes the default header.
func (d *validator) checkRequestPlace(place string, s *Secret) {
	if s.Parameter != "" && !d.IsSet(config.JoinPath(place, "header")) {
		s.Header = ""
	}
	d.reportFirst(place,
		mistake{s.Parameter != "" && s.Header != "", "parameter", "is given beside header; give only one of them"},
		mistake{s.Parameter == "" && s.Header == "", "header", "must not be empty"},
		mistake{slices.Contains(forbiddenHeaders, strings.ToLower(s.Header)), "header", "is " + s.Header + ", a header that servers and proxies interpret themselves; choose another"})
	d.reportEach(place, mistake{s.User != "", "user", "needs a preset"}, mistake{s.Server != "", "server", "needs a preset"})
}

// forbiddenHeaders are headers of the connection or the request itself (RFC 9110, 7).
var forbiddenHeaders = []string{
	"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "proxy-authorization", "proxy-connection", "keep-alive",
	"accept-encoding", "content-encoding", "range",
}

// checkClientFileConflicts rejects secret i if an earlier one needs the same entry in a client's file.
func (d *validator) checkClientFileConflicts(i int) {
	s := d.job.Policy.Secrets[i]
	for k, other := range d.job.Policy.Secrets[:i] {
		if !slices.ContainsFunc(s.Commands, other.IsForCommands) {
			continue
		}
		files, others := s.clientFileEntries(), other.clientFileEntries()
		for _, place := range slices.Sorted(maps.Keys(files)) {
			d.reportFirst(config.JoinPath("policy.secrets", i), mistake{others[place] != "", "preset", fmt.Sprintf("uses the same place in %s as policy.secrets[%d]: %s", files[place], k, place)})
		}
	}
}

// clientFileEntries returns the entries that the preset writes to its client's configuration. It maps each
// entry to the name of the file, for messages.
func (s Secret) clientFileEntries() map[string]string {
	places := make(map[string]string)
	for _, text := range s.Hosts {
		scope, err := credential.ParseScope(text)
		if err != nil {
			continue
		}
		switch s.Preset {
		case PresetNPM:
			places["//"+scope.String()+"/"] = "npm's configuration"
		case PresetPyPI, PresetGoProxy:
			places["machine "+scope.Host.Hostname()] = "the netrc file"
		case PresetGit:
			places["https://"+scope.String()] = "git's configuration"
		case PresetMaven:
			places["server "+s.Server] = "Maven's settings"
		}
	}
	return places
}

// usesProxy reports whether any commands reach the network through the proxy.
func (d *validator) usesProxy() bool {
	p := d.job.Policy
	return p.Network.HasList() || len(p.Secrets) > 0 || slices.ContainsFunc(d.job.Setup, func(s SetupStep) bool { return s.Network.HasList() })
}
