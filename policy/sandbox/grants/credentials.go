package grants

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// homeCredentialPaths lists files and folders in a home folder with credentials, or with settings that
// may contain some.
var homeCredentialPaths = []string{
	".ssh", ".gnupg", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli",
	".aws", ".azure", ".config/gcloud", ".boto", ".kube", ".docker", ".config/containers", ".oci", ".config/doctl", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".vault-token",
	".config/op", ".password-store", ".local/share/keyrings", ".config/rclone",
	".npmrc", ".yarnrc.yml", ".pypirc", ".config/pip/pip.conf", ".pip/pip.conf", ".gem/credentials", ".bundle/config", ".composer/auth.json", ".config/composer/auth.json",
	".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".config/NuGet",
	".config/pypoetry/auth.toml", ".local/share/uv/credentials", ".local/share/gem/credentials", ".ivy2/.credentials", ".sbt/.credentials", ".config/coursier/credentials.properties", ".lein/credentials.clj", ".config/helm/registry", ".dockercfg",
	".config/configstore", ".heroku", ".fly", ".pgpass", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".databrickscfg", ".snowflake", ".config/snowflake",
	".pulumi/credentials.json", ".config/sops", ".cloudflared", ".wrangler", ".config/.wrangler", ".local/share/com.vercel.cli", ".config/netlify", ".config/hcloud", ".config/linode-cli", ".config/openstack", ".aliyun", ".bluemix", ".mc/config.json", ".jfrog", ".tsh", ".config/stripe", ".config/ngrok", ".circleci", ".config/tea", ".sentryclirc", ".subversion/auth", ".kaggle", ".huggingface/token", ".cache/huggingface/token",
	".codex", ".claude", ".claude.json", ".gemini", ".copilot", ".config/github-copilot", ".config/opencode", ".local/share/opencode", ".aider.conf.yml", ".config/agent-ci",
	".cursor", ".config/cursor", ".qwen", ".kiro", ".continue", ".config/goose", ".config/crush", ".factory", ".config/amp", ".local/share/amp",
	".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history", ".irb_history", ".rediscli_history", ".sqlite_history", ".local/share/fish/fish_history",
}

// machineCredentialPaths lists the machine's credentials, readable for user 0.
var machineCredentialPaths = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/krb5.keytab",
	"/etc/docker/key.json", "/etc/rancher", "/etc/kubernetes", "/var/lib/kubelet", "/var/run/secrets", "/run/secrets",
	"/var/lib/cloud", "/var/lib/waagent",
}

// credentialPatterns lists patterns of further credentials of the machine.
var credentialPatterns = []string{"/etc/ssh/ssh_host_*_key", "/etc/ssl/private"}

// runnerCredentials lists name patterns of an Actions runner's credentials.
var runnerCredentials = []string{".credentials*", ".runner*", ".env", "_diag"}

// folderVariables maps variables to the folder of homeCredentialPaths that they move.
var folderVariables = map[string]string{
	"XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/", "CARGO_HOME": ".cargo/", "GRADLE_USER_HOME": ".gradle/",
	"COMPOSER_HOME": ".composer/", "BUNDLE_USER_HOME": ".bundle/",
}

// credentialVariables lists variables with the path of credentials, or with several paths as in PATH.
var credentialVariables = []string{
	"DOCKER_CONFIG", "KUBECONFIG", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
	"GNUPGHOME", "NETRC", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "PIP_CONFIG_FILE", "BUNDLE_USER_CONFIG", "GH_CONFIG_DIR", "CLOUDSDK_CONFIG",
	"AZURE_CONFIG_DIR", "OPENAI_IDENTITY_TOKEN_FILE", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "ACTIONS_RUNNER_HOOK_JOB_STARTED",
}

// credential is a path that no command may read. It may be missing.
type credential struct {
	path   string
	by     string // what names the path, like Secret.By
	real   string // the path with resolved links, set by locate; see there for a missing one
	exists bool   // set by locate
}

// credentialsBy returns paths as credentials named by by.
func credentialsBy(by string, paths []string) []credential {
	all := make([]credential, len(paths))
	for i, path := range paths {
		all[i] = credential{path: path, by: by}
	}
	return all
}

// credentials returns the paths that no command may read, explicitly named ones first.
func (f Folders) credentials() []credential {
	all := credentialsBy(DeniedBy, f.DenyRead)
	for _, name := range credentialVariables {
		paths := slices.DeleteFunc(filepath.SplitList(stage.Variable(f.Environ, name)), func(path string) bool { return !filepath.IsAbs(path) })
		all = append(all, credentialsBy(name, paths)...)
	}
	return append(all, credentialsBy("", f.credentialsByPlace())...)
}

// credentialsByPlace returns the credentials known by their places, including missing ones.
func (f Folders) credentialsByPlace() []string {
	paths := slices.Clone(machineCredentialPaths)
	for _, pattern := range credentialPatterns {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	for _, home := range f.homes() {
		for _, name := range homeCredentialPaths {
			paths = append(paths, filepath.Join(home, name))
		}
	}
	if temp := stage.Variable(f.Environ, "RUNNER_TEMP"); filepath.IsAbs(temp) {
		paths = append(paths, temp)
	}
	for _, dir := range f.runnerFolders() {
		paths = append(paths, entriesMatching(dir, runnerCredentials)...)
	}
	for name, folder := range folderVariables { // CARGO_HOME=/x moves ~/.cargo/credentials to /x/credentials
		dir := stage.Variable(f.Environ, name)
		for _, credential := range homeCredentialPaths {
			if below, moved := strings.CutPrefix(credential, folder); moved && filepath.IsAbs(dir) {
				paths = append(paths, filepath.Join(dir, below))
			}
		}
	}
	return paths
}

// entriesMatching returns the entries of dir that match a pattern.
func entriesMatching(dir string, patterns []string) []string {
	entries, _ := os.ReadDir(dir) // commands cannot list an unreadable folder, either
	var paths []string
	for _, entry := range entries {
		if slices.ContainsFunc(patterns, func(pattern string) bool { matches, _ := filepath.Match(pattern, entry.Name()); return matches }) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths
}

// homes returns the user's home folders: that of the user number, f.Home and $HOME may differ.
func (f Folders) homes() []string {
	var homes []string
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		homes = append(homes, u.HomeDir)
	}
	for _, home := range []string{f.Home, stage.Variable(f.Environ, "HOME")} {
		if filepath.IsAbs(home) && !slices.Contains(homes, home) {
			homes = append(homes, home)
		}
	}
	return homes
}

// runnerFolders returns the possible folders of an Actions runner: those above its work folder, and the
// usual ones.
func (f Folders) runnerFolders() []string {
	var dirs []string
	for _, name := range []string{"RUNNER_TEMP", "RUNNER_WORKSPACE"} {
		if path := stage.Variable(f.Environ, name); filepath.IsAbs(path) {
			dirs = append(dirs, filepath.Dir(filepath.Dir(path)))
		}
	}
	return append(dirs, "/home/runner/actions-runner", "/home/runner/runners", "/actions-runner")
}

// hostSockets returns the paths of Unix sockets in this network namespace. They must be hidden, because
// commands can connect to a socket on a read-only mount.
func hostSockets() []string {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		if i := strings.Index(line, " /"); i >= 0 {
			found = append(found, strings.TrimSuffix(line[i+1:], "\n"))
		}
	}
	return found
}
