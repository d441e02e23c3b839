package egress

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// clientsFolder has a folder for each kind of commands, with the files by which they use secrets.
// These contain placeholders and certificates, but no keys.
const clientsFolder = record.StateFolder + "/clients"

// ClientConfig holds files and variables by which a kind of commands uses secrets and certificates.
type ClientConfig struct {
	Folder    string            // "" without files
	Overrides map[string][]byte // contents to show instead of files elsewhere, by path
	Env       []string
	files     map[string][]byte // the files in Folder, by name
}

// addFile adds a file to the folder and returns its path.
func (k *ClientConfig) addFile(name string, content []byte) (path string) {
	k.files[name] = content
	return filepath.Join(k.Folder, name)
}

// newClientConfig returns the configuration for a kind of commands and writes its files.
func (c *Control) newClientConfig(kind string) (ClientConfig, error) {
	k := ClientConfig{files: map[string][]byte{}, Overrides: map[string][]byte{}}
	home, variable := c.Environ.Home(), settings.Environment(c.CommandEnv()).Get
	secrets, trusted := c.commandSecrets(kind), c.authoritiesFor(kind)
	if len(secrets) > 0 {
		trusted = slices.Concat(c.setup.authority.Certificate(), trusted)
	}
	folder := clientsFolder + "/" + kind
	if len(trusted) > 0 {
		c.Record.Remove(folder) // files from before a resume have another certificate authority
		path, err := c.Record.MakeFolder(folder)
		if err != nil {
			return k, err
		}
		k.Folder = path
		k.addClientFiles(secrets, home, variable)
		if err := k.addTrust(trusted, variable); err != nil {
			return k, err
		}
	}
	c.addEmptyMavenSettings(&k, home)
	for _, name := range slices.Sorted(maps.Keys(k.files)) {
		if err := c.Record.Write(folder+"/"+name, k.files[name]); err != nil {
			return k, err
		}
	}
	return k, nil
}

// commandSecrets returns the secrets of a kind of commands, with their placeholders.
func (c *Control) commandSecrets(kind string) (secrets []commandSecret) {
	for _, secret := range secretsForKind(c.Job, kind) {
		for _, known := range c.setup.credentials {
			if known.Name == secret.Name {
				secrets = append(secrets, commandSecret{secret, known.Placeholder, known.Scopes})
			}
		}
	}
	return secrets
}

// addEmptyMavenSettings shows empty Maven settings to commands of a user without settings: showing settings to
// other commands leaves an empty file there, which Maven rejects.
func (c *Control) addEmptyMavenSettings(k *ClientConfig, home string) {
	path := mavenSettingsIn(home)
	jobHasSecret := slices.ContainsFunc(c.Job.Policy.Secrets, func(secret job.Secret) bool { return secret.Preset == job.PresetMaven })
	commandsHaveSecret := k.Overrides[path] != nil
	if home == "" || !jobHasSecret || commandsHaveSecret {
		return
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		k.Overrides[path] = []byte(noMavenSettings)
	}
}

// authoritiesFor returns the job's certificate authorities for hosts of a kind of commands, in PEM.
func (c *Control) authoritiesFor(kind string) []byte {
	entries := slices.Concat(c.Job.Policy.Network.Allow, hostsOfSecrets(secretsForKind(c.Job, kind)))
	if kind == job.CommandsSetup {
		for _, step := range c.Job.Setup {
			entries = append(entries, step.Network.Allow...)
		}
	}
	return c.Authorities.CertificatesFor(entries)
}

// ClientConfigOf returns the client configuration of commands. Without a proxy, secrets are
// useless: it then has only Maven settings without secrets, or nothing.
func (c *Control) ClientConfigOf(commands Commands) ClientConfig {
	config := c.setup.clientConfigs[commands.Kind]
	if c.Proxied(commands) {
		return config
	}
	settings := mavenSettingsIn(c.Environ.Home())
	if config.Overrides[settings] == nil {
		return ClientConfig{}
	}
	return ClientConfig{Overrides: map[string][]byte{settings: []byte(noMavenSettings)}}
}
