package settings

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Environment is the environment of agent-ci itself, NAME=value each.
type Environment []string

// Get returns the value of a variable. It is empty for an unset one.
func (e Environment) Get(name string) string { return stage.Variable(e, name) }

// Home returns the user's home folder. It is "" if HOME is not absolute, because a relative path would
// depend on the working directory, and for /dev/null.
func (e Environment) Home() string {
	if home := e.Get("HOME"); filepath.IsAbs(home) && home != os.DevNull {
		return home
	}
	return ""
}

// Absolute makes paths of the job absolute. Paths starting with ~/ are below the user's home
// folder, other relative paths below root.
func (e Environment) Absolute(root string, paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		switch rest, inHome := strings.CutPrefix(path, "~/"); {
		case inHome:
			all[i] = filepath.Join(e.Home(), rest)
		case filepath.IsAbs(path):
			all[i] = path
		default:
			all[i] = filepath.Join(root, filepath.FromSlash(path))
		}
	}
	return all
}

// InActions reports whether the process is a step of a GitHub Actions job.
func (e Environment) InActions() bool { return e.Get("GITHUB_ACTIONS") == "true" }

// Forge returns the root URLs of the forge's API and of its web pages, which are those of its repositories too.
func (e Environment) Forge() (api, server string) {
	api = cmp.Or(e.Get("GITHUB_API_URL"), "https://api.github.com")
	return api, cmp.Or(strings.TrimSuffix(e.Get("GITHUB_SERVER_URL"), "/"), serverOf(api))
}

// serverOf returns the root URL of the web pages for an API URL. GitHub's own API is on a separate
// host. An Enterprise Server has both on one host. It returns "" for text that is no URL.
func serverOf(api string) string {
	u, err := url.Parse(api)
	if err != nil {
		return ""
	}
	u.Host = strings.TrimPrefix(u.Host, "api.")
	return u.Scheme + "://" + u.Host
}

// ForgeServer returns the address of the forge's repositories.
func (e Environment) ForgeServer() string {
	_, server := e.Forge()
	return server
}

// Token returns the GitHub token, or "" if no variable has one. [Environment.CheckToken] checks it.
func (e Environment) Token() string { return strings.TrimSpace(e.Get(e.tokenVariable())) }

// tokenVariable returns the variable of the GitHub token: GH_TOKEN if only that one is set, or else GITHUB_TOKEN.
func (e Environment) tokenVariable() string {
	const usual, other = "GITHUB_TOKEN", "GH_TOKEN"
	if strings.TrimSpace(e.Get(usual)) == "" && e.Get(other) != "" {
		return other
	}
	return usual
}

// Key returns the key or token in a variable, without the line break that a pasted one may end in. It is "" for an unset
// or blank variable. The error is that of CheckKey.
func (e Environment) Key(variable string) (string, error) {
	key := strings.TrimSpace(e.Get(variable))
	return key, CheckKey(variable, key)
}

// CheckKey returns an error if the key or token of a variable holds a character that none has, as a badly pasted one
// does. Blanks within are allowed: servers on this machine take any text, such as "not needed".
func CheckKey(variable, value string) error {
	if !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r >= 0x7f || r == '"' || r == '\'' }) {
		return nil
	}
	return fmt.Errorf("the value of %s holds a line break, a quote or another character that no key has: set it to the key alone", variable)
}

// RunLink returns the address of this attempt of the run in Actions. It is empty elsewhere.
func (e Environment) RunLink() string {
	server, repo, id := e.Get("GITHUB_SERVER_URL"), e.Get("GITHUB_REPOSITORY"), e.Get("GITHUB_RUN_ID")
	if server == "" || repo == "" || id == "" {
		return ""
	}
	page := server + "/" + repo + "/actions/runs/" + id
	if attempt := e.Get("GITHUB_RUN_ATTEMPT"); attempt != "" {
		page += "/attempts/" + attempt
	}
	return page
}

// UploadVariable is set by the action if it uploads report, transcript and result at the end of the
// run.
const UploadVariable = "AGENT_CI_UPLOAD"

// PaceVariable names the file shared by the runs of a campaign to limit the rate of content they
// create on the forge. Commands do not see the variable.
const PaceVariable = "AGENT_CI_PACE"

// CheckToken returns an error if a GitHub token, which is the environment's or was typed in its place, is badly pasted.
// It is an *outcome.Stop.
func (e Environment) CheckToken(token string) error {
	err := CheckKey(e.tokenVariable(), token)
	if strings.Contains(token, " ") {
		err = fmt.Errorf("the value of %s holds a blank: set it to the token alone", e.tokenVariable())
	}
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "no_token", "The GitHub token cannot be used: %v.", err).Because(err)
	}
	return nil
}

// CampaignVariable names the folder with the runs of a campaign. Commands do not see the variable.
// Of the folder they see only their own checkout and anything it borrows.
const CampaignVariable = "AGENT_CI_CAMPAIGN"

// Artifacts returns the address of the uploaded files on the run's page. It is empty without an
// upload.
func (e Environment) Artifacts() string {
	page := e.RunLink()
	if page == "" || e.Get(UploadVariable) != "true" {
		return ""
	}
	return page + "#artifacts"
}

// IdentityFileVariable names the file with the token of the job.
const IdentityFileVariable = "OPENAI_IDENTITY_TOKEN_FILE"

// credentialVariables lists the variables with credentials of a run.
var credentialVariables = []string{
	"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "CODEX_API_KEY",
	"ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
}

// Secrets returns the values to remove from all output: every value of the known names and of extraNames,
// other values of variables named like a credential, and the logins of the machine's proxies.
func (e Environment) Secrets(extraNames ...string) (values []secrets.Value) {
	known := slices.Concat(credentialVariables, extraNames)
	for _, name := range known {
		if value := e.Get(name); value != "" {
			values = append(values, secrets.Value{Name: name, Secret: value})
		}
	}
	for _, variable := range e {
		name, value, _ := strings.Cut(variable, "=")
		if len(value) >= secrets.MinLength && !slices.Contains(known, name) && policy.NamesSecret(name, value) {
			values = append(values, secrets.Value{Name: name, Secret: value})
		}
		for _, login := range proxyLogins(name, value) {
			values = append(values, secrets.Value{Name: name, Secret: login})
		}
	}
	return values
}

// proxyLogins returns user and password from a proxy's address, both as written and decoded as sent
// to the proxy. They form a pair, because a password alone may be a common word. A user without a
// password counts as a token from 16 bytes on.
func proxyLogins(name, address string) []string {
	if !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
		return nil
	}
	if _, after, schemed := strings.Cut(address, "://"); schemed {
		address = after
	}
	login := loginOf(address)
	user, password, _ := strings.Cut(login, ":")
	minLength := secrets.MinLength
	logins := []string{login, unescapeURL(user) + ":" + unescapeURL(password)}
	if password == "" {
		minLength = minTokenLength
		logins = []string{user, unescapeURL(user)}
	}
	return slices.DeleteFunc(slices.Compact(logins), func(login string) bool { return len(login) < minLength })
}

const minTokenLength = 16

// loginOf returns the login in an address without scheme, or "": "me:pw" in "me:pw@host/a@b". A password may
// contain /, ? and #, although a URL forbids them: the login in "me:p/w@host" is "me:p/w".
func loginOf(address string) string {
	authority := address
	if end := strings.IndexAny(address, "/?#"); end >= 0 && strings.Contains(address[:end], "@") {
		authority = address[:end]
	}
	return authority[:max(strings.LastIndexByte(authority, '@'), 0)]
}

func unescapeURL(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// Secrets returns the values that a run removes from everything it writes or sends. These are keys
// and tokens of the environment, and credentials passed by the job to commands, servers or the
// model's API. j may be nil.
func Secrets(env Environment, j *job.Job) (values []secrets.Value) {
	if j == nil {
		return env.Secrets()
	}
	add := func(prefix string, from map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if value := from[name]; policy.NamesSecret(name, value) {
				values = append(values, secrets.Value{Name: prefix + name, Secret: value})
			}
		}
	}
	add("model.headers.", j.Model.Headers)
	add("policy.env.set.", j.Policy.Env.Set)
	for _, secret := range j.Policy.Secrets { // those in files are added when they are read
		if value := env.Get(secret.From); value != "" && !secret.FromFile() {
			values = append(values, secrets.Value{Name: secret.Name, Secret: value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.MCPServers)) {
		server := j.MCPServers[name]
		add("mcp_servers."+name+".headers.", server.Headers)
		add("mcp_servers."+name+".env.set.", server.Env.Set)
	}
	values = append(values, ServerSecrets(env, j)...)
	for _, tool := range j.Tools.Hosted {
		values = append(values, hostedSecrets(tool)...)
	}
	return append(values, env.Secrets(j.Model.APIKeyEnv, j.PullRequest.Commit.KeyEnv)...)
}

// hostedSecrets returns the credentials of a hosted tool for other services.
func hostedSecrets(tool map[string]any) (values []secrets.Value) {
	if token, _ := tool["authorization"].(string); token != "" {
		values = append(values, secrets.Value{Name: "tools.hosted.authorization", Secret: token})
	}
	headers, _ := tool["headers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if value, _ := headers[name].(string); policy.NamesSecret(name, value) {
			values = append(values, secrets.Value{Name: "tools.hosted.headers." + name, Secret: value})
		}
	}
	return values
}
