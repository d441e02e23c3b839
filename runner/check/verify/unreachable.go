package verify

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// unreachablePatterns matches messages about unreachable hosts and refusals of a proxy.
var unreachablePatterns = lazyregexp.New(`(?i)could not resolve (?:host|proxy)|temporary failure (?:in name resolution|resolving)|name or service not known|no such host|network is unreachable|nodename nor servname|unknown host|UnknownHostException|` +
	`\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b|dial (?:tcp|udp)[^\n]*(?:connection refused|i/o timeout)|failed to connect to \S+ port \d+|(?:proxy|tunnel|CONNECT)[^\n]*\b403\b|\b403\b[^\n]*(?:proxy|tunnel|CONNECT)|request to https?://\S+ failed`)

// programPresets maps programs that fetch packages to presets of hosts.
var programPresets = map[string]string{
	"npm": "npm", "npx": "npm", "pnpm": "npm", "yarn": "npm", "corepack": "npm", "pip": "pypi", "pip3": "pypi", "uv": "pypi", "uvx": "pypi", "poetry": "pypi", "tox": "pypi", "go": "goproxy", "cargo": "cargo",
	"mvn": "maven", "mvnw": "maven", "gradle": "gradle", "gradlew": "gradle", "gem": "rubygems", "bundle": "rubygems", "dotnet": "nuget", "apt": "debian", "apt-get": "debian", "git": "github-read",
}

// networkAdvice returns advice about network access if output looks as if the command run could not reach a
// host. Otherwise it returns "". key is the setting's name and network its value.
func networkAdvice(key string, network job.Network, run, output string) string {
	if network.Mode == "full" || !unreachablePatterns().MatchString(output) {
		return ""
	}
	has := "which is none"
	switch {
	case network.HasList():
		has = "which lists no such host"
	case network.Mode != "" && network.Mode != "none":
		has = "which is " + network.Mode
	}
	advice := fmt.Sprintf("Its output looks as if it could not reach a host: its network is that of %s, %s.", key, has)
	if preset := presetFor(run, output); preset != "" {
		return advice + fmt.Sprintf(" Give the setup command that fetches it the network {allow: [{preset: %s}]} (setup[].network).", preset)
	}
	return advice + " Give the setup command that fetches it the hosts that it needs (setup[].network)."
}

// presetFor returns the preset with a host that the output names, or else the preset of a program
// in the command. It returns "" without either.
func presetFor(run, output string) string {
	for _, preset := range reach.PresetNames() {
		if slices.ContainsFunc(reach.PresetHosts(preset), func(host string) bool { return strings.Contains(output, host) }) {
			return preset
		}
	}
	for _, command := range shell.DecidingCommands(run) {
		if preset := programPresets[path.Base(command[0])]; preset != "" {
			return preset
		}
	}
	return ""
}
