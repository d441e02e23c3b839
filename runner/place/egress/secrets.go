package egress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// secretsSetup holds what commands need to use secrets. The zero value means no secrets.
type secretsSetup struct {
	credentials   credential.Set          // with placeholders
	authority     *authority.Authority    // signs certificates for the secrets' hosts
	clientConfigs map[string]ClientConfig // by kind of commands
}

// SetUpSecrets makes placeholders for the job's secrets, a certificate authority for their hosts, and clients'
// files. Set Credentials first. Call it once, before the first sandbox.
func (c *Control) SetUpSecrets() (err error) {
	c.setup = secretsSetup{clientConfigs: map[string]ClientConfig{}}
	if len(c.Credentials) > 0 {
		if c.setup.credentials, err = c.withPlaceholders(); err != nil {
			return err
		}
		if c.setup.authority, err = authority.New(c.setup.credentials.Hosts()); err != nil {
			return err
		}
	}
	for _, kind := range []string{job.CommandsAgent, job.CommandsSetup, job.CommandsVerify} {
		if c.setup.clientConfigs[kind], err = c.newClientConfig(kind); err != nil {
			return fmt.Errorf("make what commands use secrets by: %w", err)
		}
	}
	return nil
}

// withPlaceholders returns the credentials with placeholders. It makes and saves missing ones.
func (c *Control) withPlaceholders() (credential.Set, error) {
	placeholders := map[string]string{}
	if _, err := c.Record.ReadJSON(record.PlaceholdersFile, &placeholders); err != nil {
		return nil, fmt.Errorf("read the placeholders of secrets: %w", err)
	}
	all := slices.Clone(c.Credentials)
	for i, own := range all {
		if len(placeholders[own.Name]) != len(own.Value) { // the placeholder is missing, or is of an older secret
			placeholders[own.Name] = credential.NewPlaceholder(own.Value)
		}
		all[i].Placeholder = placeholders[own.Name]
	}
	if _, err := c.Record.MakeFolder(record.StateFolder); err != nil {
		return nil, err
	}
	return all, c.Record.WriteJSON(record.PlaceholdersFile, placeholders)
}

// credentialsOf returns all credentials of the run for commands. Those that the commands do not get
// are marked Denied: a request with their placeholder is refused instead of sent.
func (c *Control) credentialsOf(commands Commands) credential.Set {
	set := slices.Clone(c.setup.credentials)
	for i, each := range set {
		set[i].Denied = !hasSecret(c.secretsOf(commands), each.Name)
	}
	return set
}

// secretsOf returns the secrets that commands get. Without a proxied network they get none.
func (c *Control) secretsOf(commands Commands) []job.Secret {
	network := c.networkOf(commands)
	mayHaveProxy := network.HasList() || network.Mode == string(sandbox.NetworkLoopback)
	if !mayHaveProxy {
		return nil
	}
	return secretsForKind(c.Job, commands.Kind)
}

// networkOf returns the network of commands, by default that of the job's policy.
func (c *Control) networkOf(commands Commands) job.Network {
	if commands.Network.IsZero() {
		return c.Job.Policy.Network
	}
	return commands.Network
}

func hasSecret(secrets []job.Secret, name string) bool {
	return slices.ContainsFunc(secrets, func(secret job.Secret) bool { return secret.Name == name })
}

// secretsForKind returns the job's secrets for a kind of commands.
func secretsForKind(j *job.Job, kind string) (secrets []job.Secret) {
	for _, secret := range j.Policy.Secrets {
		if secret.IsForCommands(kind) {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// hostsOfSecrets returns the hosts of secrets.
func hostsOfSecrets(secrets []job.Secret) (entries []job.AllowedHost) {
	for _, secret := range secrets {
		entries = append(entries, secret.AllowedHosts()...)
	}
	return entries
}

// Proxied reports whether commands use the network through agent-ci's proxy.
func (c *Control) Proxied(commands Commands) bool {
	return c.networkOf(commands).HasList() || len(c.secretsOf(commands)) > 0
}

// FirstProxied returns the job's first commands that need a proxy; the agent's come first. Secrets that no
// command gets count too, because unconfined commands could read their files.
func (c *Control) FirstProxied() (commands Commands, found bool) {
	all := c.allCommands()
	for _, secret := range c.Job.Policy.Secrets {
		for _, kind := range secret.Commands {
			all = append(all, Commands{Kind: kind})
		}
	}
	i := slices.IndexFunc(all, c.Proxied)
	if i < 0 {
		return Commands{}, false
	}
	return all[i], true
}

// UnusableSecrets returns the names of secrets that no command can use.
func (c *Control) UnusableSecrets() (names []string) {
	for _, secret := range c.Job.Policy.Secrets {
		usable := slices.ContainsFunc(c.allCommands(), func(commands Commands) bool { return hasSecret(c.secretsOf(commands), secret.Name) })
		if !usable {
			names = append(names, secret.Name)
		}
	}
	return names
}

// allCommands returns the commands of the job: the agent's, setup's and the checks'.
func (c *Control) allCommands() []Commands {
	all := []Commands{agentCommands}
	for _, step := range c.Job.Setup {
		all = append(all, Commands{Kind: job.CommandsSetup, Network: step.Network})
	}
	if len(c.Job.Verify) > 0 {
		all = append(all, Commands{Kind: job.CommandsVerify})
	}
	return all
}

// DescribeSecrets returns a line for people about each secret of the job.
func (c *Control) DescribeSecrets() []string {
	words := []string{}
	for _, secret := range c.Job.Policy.Secrets {
		words = append(words, describeSecrets([]job.Secret{secret})+", of "+strings.Join(secret.Commands, ", "))
	}
	return words
}

// describeSecrets describes what secrets are for, and where requests contain them.
func describeSecrets(own []job.Secret) string {
	words := make([]string, len(own))
	for i, secret := range own {
		words[i] = secret.Name + " for " + strings.Join(secret.Hosts, ", ") + " (" + cmp.Or(strings.Join(secret.Methods, ", "), "git fetch") + ", " + placeholderPlaces(secret) + ")"
	}
	return strings.Join(words, "; ")
}

// placeholderPlaces names the header or parameter that carries a secret.
func placeholderPlaces(secret job.Secret) string {
	if secret.Parameter != "" {
		return "parameter " + secret.Parameter
	}
	return "header " + secret.Header
}

// describeSecretsToModel describes the secrets of commands to the model. It returns "" if they have none.
func describeSecretsToModel(own []job.Secret) string {
	if len(own) == 0 {
		return ""
	}
	return "; secrets: " + describeSecrets(own) + "; variables and files hold placeholders, which the proxy replaces in requests to these hosts and refuses elsewhere"
}
