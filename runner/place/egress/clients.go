package egress

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// commandSecret is a job's secret as commands get it, with a placeholder.
type commandSecret struct {
	job.Secret
	placeholder string
	scopes      []credential.Scope
}

// filterByPreset returns the secrets with a preset.
func filterByPreset(preset string, all []commandSecret) []commandSecret {
	return slices.DeleteFunc(slices.Clone(all), func(p commandSecret) bool { return p.Preset != preset })
}

// schemelessURL returns a scope as a URL without https:// and the port 443, because clients compare this text.
func schemelessURL(scope credential.Scope) string {
	host, port := scope.Host.Hostname(), scope.Host.Port()
	if isIPv6 := strings.Contains(host, ":"); isIPv6 {
		host = "[" + host + "]"
	}
	if port != 0 && port != 443 {
		host += fmt.Sprintf(":%d", port)
	}
	return host + scope.Path
}

// npmrcContent returns npm's user configuration. pnpm and Yarn 1 read it, too.
func npmrcContent(all []commandSecret) []byte {
	var b strings.Builder
	for _, p := range all {
		for _, scope := range p.scopes {
			fmt.Fprintf(&b, "//%s/:_authToken=%s\n", schemelessURL(scope), p.placeholder)
		}
	}
	return []byte(b.String())
}

// netrcContent returns a netrc file, which pip, Go and other clients read.
func netrcContent(all []commandSecret) []byte {
	var b strings.Builder
	for _, p := range all {
		named := map[string]bool{}
		for _, scope := range p.scopes {
			if name := scope.Host.Hostname(); !named[name] {
				fmt.Fprintf(&b, "machine %s\nlogin %s\npassword %s\n", name, p.User, p.placeholder)
				named[name] = true
			}
		}
	}
	return []byte(b.String())
}

// gitConfiguration returns variables that extend git's configuration: GIT_CONFIG_COUNT, GIT_CONFIG_KEY_N and
// GIT_CONFIG_VALUE_N (git-config(1)). variable looks up existing variables, which stay valid.
func gitConfiguration(all []commandSecret, variable func(name string) string) []string {
	count, err := strconv.Atoi(variable("GIT_CONFIG_COUNT"))
	if err != nil || count < 0 {
		count = 0
	}
	var variables []string
	for _, p := range all {
		header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.User+":"+p.placeholder))
		for _, address := range repositoryURLs(p.scopes) {
			variables = append(variables,
				fmt.Sprintf("GIT_CONFIG_KEY_%d=http.https://%s.extraHeader", count, address),
				fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", count, header))
			count++
		}
	}
	if variables == nil {
		return nil
	}
	return append(variables, fmt.Sprintf("GIT_CONFIG_COUNT=%d", count))
}

// repositoryURLs returns addresses with and without a final .git. git compares whole path segments.
func repositoryURLs(scopes []credential.Scope) (addresses []string) {
	for _, scope := range scopes {
		address := schemelessURL(scope)
		addresses = append(addresses, address)
		if bare, has := strings.CutSuffix(address, ".git"); has && scope.Path != "" {
			addresses = append(addresses, bare)
		} else if scope.Path != "" {
			addresses = append(addresses, address+".git")
		}
	}
	return addresses
}

// mavenSettings returns the user's Maven settings. They name the proxy, because Maven reads no variables.
func mavenSettings(all []commandSecret) []byte {
	settings := mavenFile{Namespace: "http://maven.apache.org/SETTINGS/1.0.0"}
	for _, p := range all {
		settings.Servers = append(settings.Servers, mavenServer{p.Server, p.User, p.placeholder})
	}
	for _, protocol := range []string{"https", "http"} {
		settings.Proxies = append(settings.Proxies, mavenProxy{"agent-ci-" + protocol, true, protocol, proxyHost, sandbox.ProxyPort, proxyExceptions})
	}
	out, err := xml.MarshalIndent(settings, "", "  ")
	if err != nil {
		panic(err) // cannot happen: the settings contain only texts and numbers
	}
	return append(out, '\n')
}

type mavenFile struct {
	XMLName   xml.Name      `xml:"settings"`
	Namespace string        `xml:"xmlns,attr"`
	Servers   []mavenServer `xml:"servers>server"`
	Proxies   []mavenProxy  `xml:"proxies>proxy"`
}

type mavenServer struct {
	ID       string `xml:"id"`
	Username string `xml:"username"`
	Password string `xml:"password"`
}

type mavenProxy struct {
	ID            string `xml:"id"`
	Active        bool   `xml:"active"`
	Protocol      string `xml:"protocol"`
	Host          string `xml:"host"`
	Port          int    `xml:"port"`
	NonProxyHosts string `xml:"nonProxyHosts"`
}

// noMavenSettings is shown to commands without Maven secrets, because Maven rejects an empty file.
const noMavenSettings = `<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"/>` + "\n"

// The proxy settings of a JVM.
const (
	proxyHost       = "127.0.0.1"
	proxyExceptions = "localhost|127.*|[::1]"
)

// addClientFiles adds the files and variables by which clients use the secrets.
func (k *ClientConfig) addClientFiles(all []commandSecret, home string, variable func(name string) string) {
	for _, p := range all {
		k.Env = append(k.Env, p.Name+"="+p.placeholder)
	}
	if own := filterByPreset(job.PresetNPM, all); len(own) > 0 {
		file := k.addFile("npmrc", npmrcContent(own))
		k.Env = append(k.Env, "NPM_CONFIG_USERCONFIG="+file, "npm_config_userconfig="+file)
	}
	if own := append(filterByPreset(job.PresetPyPI, all), filterByPreset(job.PresetGoProxy, all)...); len(own) > 0 {
		k.Env = append(k.Env, "NETRC="+k.addFile("netrc", netrcContent(own)))
	}
	k.Env = append(k.Env, gitConfiguration(filterByPreset(job.PresetGit, all), variable)...)
	for _, p := range filterByPreset(job.PresetCargo, all) {
		k.Env = append(k.Env, strings.TrimSuffix(p.Name, "_TOKEN")+"_CREDENTIAL_PROVIDER=cargo:token") // otherwise Cargo requires a provider in its configuration
	}
	if own := filterByPreset(job.PresetMaven, all); len(own) > 0 && home != "" {
		k.Overrides[mavenSettingsIn(home)] = mavenSettings(own)
	}
}

func mavenSettingsIn(home string) string { return filepath.Join(home, ".m2", "settings.xml") }
