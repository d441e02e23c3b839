package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/secrets"
)

// machineVariables lists the variables about machine, user, workflow and network. No program loads code from
// their values.
var machineVariables = wordSet(
	`PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM NO_COLOR TMPDIR TMP TEMP DEBIAN_FRONTEND`,
	// the workflow
	`CI GITHUB_ACTIONS GITHUB_ACTOR GITHUB_API_URL GITHUB_BASE_REF GITHUB_EVENT_NAME GITHUB_GRAPHQL_URL GITHUB_HEAD_REF
	GITHUB_JOB GITHUB_REF GITHUB_REF_NAME GITHUB_REF_PROTECTED GITHUB_REF_TYPE GITHUB_REPOSITORY GITHUB_REPOSITORY_OWNER
	GITHUB_RUN_ATTEMPT GITHUB_RUN_ID GITHUB_RUN_NUMBER GITHUB_SERVER_URL GITHUB_SHA GITHUB_WORKFLOW GITHUB_WORKSPACE
	RUNNER_ARCH RUNNER_ENVIRONMENT RUNNER_OS RUNNER_TOOL_CACHE AGENT_TOOLSDIRECTORY ImageOS ImageVersion`,
	// the network
	`HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
	SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO AWS_CA_BUNDLE`,
)

// harmlessVariables lists further variables for commands: paths of toolchains and caches. It excludes
// credentials, sockets of other programs (SSH_AUTH_SOCK, XDG_RUNTIME_DIR), files of the CI service
// (GITHUB_ENV, GITHUB_OUTPUT, …) and code loaders (BASH_ENV, LD_PRELOAD).
var harmlessVariables = wordSet(
	`XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME`,
	// Go, C
	`GO111MODULE GOAMD64 GOARCH GOARM GOARM64 GOBIN GOCACHE GODEBUG GOENV GOEXPERIMENT GOFLAGS GOGC GOINSECURE GOMAXPROCS
	GOMEMLIMIT GOMODCACHE GONOPROXY GONOSUMDB GOOS GOPATH GOPRIVATE GOPROXY GOROOT GOSUMDB GOTMPDIR GOTOOLCHAIN GOVCS GOWORK
	AR CC CFLAGS CGO_CFLAGS CGO_CPPFLAGS CGO_CXXFLAGS CGO_ENABLED CGO_LDFLAGS CPPFLAGS CXX CXXFLAGS LDFLAGS
	LD_LIBRARY_PATH PKG_CONFIG PKG_CONFIG_PATH CCACHE_DIR SCCACHE_DIR`,
	// JavaScript
	`BUN_INSTALL COREPACK_HOME DENO_DIR DENO_INSTALL FNM_DIR NODE_ENV NODE_OPTIONS NODE_PATH NPM_CONFIG_CACHE NPM_CONFIG_PREFIX
	NPM_CONFIG_REGISTRY npm_config_cache npm_config_prefix npm_config_registry PLAYWRIGHT_BROWSERS_PATH PNPM_HOME VOLTA_HOME
	YARN_CACHE_FOLDER CHROME_BIN CHROMEWEBDRIVER GECKOWEBDRIVER`,
	// Python
	`CONDA CONDA_DEFAULT_ENV CONDA_PREFIX PIPX_BIN_DIR PIPX_HOME PIP_CACHE_DIR PIP_EXTRA_INDEX_URL PIP_INDEX_URL
	POETRY_CACHE_DIR POETRY_HOME Python2_ROOT_DIR Python3_ROOT_DIR Python_ROOT_DIR UV_CACHE_DIR UV_DEFAULT_INDEX UV_INDEX_URL
	UV_PYTHON VIRTUAL_ENV pythonLocation`,
	// Rust, Ruby, PHP, the JVM, .NET, others
	`CARGO_HOME CARGO_INCREMENTAL CARGO_TARGET_DIR CARGO_TERM_COLOR RUSTFLAGS RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE
	BUNDLE_GEMFILE BUNDLE_PATH GEM_HOME GEM_PATH RUBYLIB COMPOSER_CACHE_DIR COMPOSER_HOME
	ANT_HOME GRADLE_HOME GRADLE_USER_HOME JAVA_HOME JDK_HOME KOTLIN_HOME M2_HOME MAVEN_HOME
	NUGET_PACKAGES ANDROID_HOME ANDROID_NDK ANDROID_NDK_HOME ANDROID_NDK_ROOT ANDROID_SDK_ROOT
	HOMEBREW_CELLAR HOMEBREW_PREFIX HOMEBREW_REPOSITORY SWIFT_PATH FLUTTER_ROOT MIX_HOME HEX_HOME`,
)

// harmlessPrefixes lists prefixes of harmless names. A name with a word of secretWords is not harmless.
var harmlessPrefixes = []string{"LC_", "NVM_", "PYTHON", "PYENV_", "RBENV_", "ASDF_", "MISE_", "DOTNET_", "GOROOT_", "JAVA_HOME_"}

// secretWords lists words in names of credentials. The match ignores case.
var secretWords = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "KEY", "CREDENTIAL", "AUTH", "COOKIE"}

// urlUserinfo matches name and password before the host of a URL. It accepts more than the syntax
// (RFC 3986, 3.2.1), because many passwords are not escaped.
var urlUserinfo = lazyregexp.New(`://[^\s,|]*@`)

// Environment returns the environment of a run's commands as NAME=value, sorted by name: harmless
// variables of environ and those in pass, overridden by set. Unless pass lists it, a variable
// is dropped if its name contains a secret word, or its value a token or a URL with a password.
func Environment(environ, pass []string, set map[string]string) []string {
	return filterEnvironment(environ, set, func(name, value string) bool {
		return slices.Contains(pass, name) || isHarmless(name, value)
	})
}

// MachineEnvironment returns the variables of environ about machine, user, workflow and network,
// overridden by set. It excludes the search paths of interpreters.
func MachineEnvironment(environ []string, set map[string]string) []string {
	return filterEnvironment(environ, set, func(name, value string) bool {
		return (machineVariables[name] || strings.HasPrefix(name, "LC_")) && isHarmless(name, value)
	})
}

// filterEnvironment returns the variables of environ that keep accepts, overridden by set, sorted by name.
func filterEnvironment(environ []string, set map[string]string, keep func(name, value string) bool) []string {
	values := make(map[string]string, len(environ))
	for _, variable := range environ {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || name == "" {
			continue
		}
		delete(values, name) // the last of two definitions counts, even if keep rejects it
		if keep(name, value) {
			values[name] = value
		}
	}
	maps.Copy(values, set)
	variables := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, name+"="+values[name])
	}
	return variables
}

// isHarmless reports whether a variable is safe for commands. Its name is listed as harmless and
// contains no secret word; its value contains neither a password in a URL nor a token.
func isHarmless(name, value string) bool {
	upper := strings.ToUpper(name)
	if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(upper, word) }) {
		return false
	}
	isListed := machineVariables[name] || harmlessVariables[name] || slices.ContainsFunc(harmlessPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	return isListed && !containsUserinfo(name, value) && !containsToken(value)
}

// containsUserinfo reports whether a value contains a URL with a name or password. URLs in *_PROXY
// variables may have no scheme, so an @ suffices there.
func containsUserinfo(name, value string) bool {
	if strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
		return strings.Contains(value, "@")
	}
	return urlUserinfo().MatchString(value)
}

// containsToken reports whether text contains a token of a well-known shape.
func containsToken(text string) bool {
	var shapes secrets.Redactor
	return shapes.Redact(text) != text
}

// wordSet returns the words of lists separated by blanks.
func wordSet(lists ...string) map[string]bool {
	set := make(map[string]bool)
	for _, list := range lists {
		for _, word := range strings.Fields(list) {
			set[word] = true
		}
	}
	return set
}
