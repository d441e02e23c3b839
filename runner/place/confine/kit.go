package confine

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

// clientConfig holds the files and variables by which a kind of commands uses secrets and
// certificates.
type clientConfig struct {
	folder    string
	files     map[string][]byte // the files in folder, by name
	overrides map[string][]byte // contents to show instead of files elsewhere, by path
	env       []string
}

// addFile adds a file to the folder and returns its path.
func (k *clientConfig) addFile(name string, content []byte) (path string) {
	k.files[name] = content
	return filepath.Join(k.folder, name)
}

// newClientConfig returns the configuration for a kind of commands and writes its files.
func (s *Sandboxes) newClientConfig(kind string) (clientConfig, error) {
	k := clientConfig{files: map[string][]byte{}, overrides: map[string][]byte{}}
	own, home, variable := s.commandSecrets(kind), s.Environ.Home(), settings.Environment(s.env()).Get
	trusted := s.authoritiesFor(kind)
	if len(own) > 0 {
		trusted = slices.Concat(s.secretsSetup.authority.Certificate(), trusted)
	}
	if len(trusted) > 0 {
		folder, err := s.clientsFolderOf(kind)
		if err != nil {
			return k, err
		}
		k.folder = folder
		k.clientFiles(own, home, variable)
		if err := k.trust(trusted, variable); err != nil {
			return k, err
		}
	}
	s.addEmptyMavenSettings(&k, home)
	for _, name := range slices.Sorted(maps.Keys(k.files)) {
		if err := s.Record.Write(clientsFolder+"/"+kind+"/"+name, k.files[name]); err != nil {
			return k, err
		}
	}
	return k, nil
}

// clientsFolderOf recreates the folder for a kind of commands. Old files are useless, because a
// resumed run has a new certificate authority.
func (s *Sandboxes) clientsFolderOf(kind string) (string, error) {
	name := clientsFolder + "/" + kind
	s.Record.Remove(name)
	return s.Record.MakeFolder(name)
}

// commandSecrets returns the secrets of a kind of commands, with their placeholders.
func (s *Sandboxes) commandSecrets(kind string) (own []commandSecret) {
	for _, secret := range secretsFor(s.Job, kind) {
		for _, c := range s.secretsSetup.credentials {
			if c.Name == secret.Name {
				own = append(own, commandSecret{secret, c.Placeholder, c.Scopes})
			}
		}
	}
	return own
}

// addEmptyMavenSettings shows empty Maven settings if some commands of the job have a Maven secret
// and the user has no settings file. Showing settings to the commands with the secret leaves an
// empty file at that path. Maven would fail on it for other commands.
func (s *Sandboxes) addEmptyMavenSettings(k *clientConfig, home string) {
	if !slices.ContainsFunc(s.Job.Policy.Secrets, func(secret job.Secret) bool { return secret.Preset == job.PresetMaven }) || home == "" {
		return
	}
	path := mavenSettingsIn(home)
	if _, err := os.Lstat(path); k.overrides[path] == nil && errors.Is(err, fs.ErrNotExist) {
		k.overrides[path] = []byte(noMavenSettings)
	}
}

// authoritiesFor returns the job's certificate authorities for the hosts of a kind of commands, in
// PEM.
func (s *Sandboxes) authoritiesFor(kind string) []byte {
	entries := slices.Concat(s.Job.Policy.Network.Allow, entriesOf(secretsFor(s.Job, kind)))
	if kind == job.CommandsSetup {
		for _, step := range s.Job.Setup {
			entries = append(entries, step.Network.Allow...)
		}
	}
	return s.Authorities.Of(entries)
}

// clientConfigAt returns the client configuration for a place. Without a proxy, secrets are
// useless, so their files are left out.
func (s *Sandboxes) clientConfigAt(p Place) clientConfig {
	all := s.secretsSetup.clientConfigs[p.CommandKind]
	if s.proxied(p) {
		return all
	}
	return clientConfig{overrides: s.withoutSecrets(all.overrides)}
}

// withoutSecrets returns versions without secrets of the files that contain secrets. Today only
// Maven's settings.xml does.
func (s *Sandboxes) withoutSecrets(shown map[string][]byte) map[string][]byte {
	home := s.Environ.Home()
	if shown[mavenSettingsIn(home)] == nil {
		return nil
	}
	return map[string][]byte{mavenSettingsIn(home): []byte(noMavenSettings)}
}
