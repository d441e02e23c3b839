package confine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// kinds lists the kinds of commands that may get secrets.
var kinds = []string{job.CommandsAgent, job.CommandsSetup, job.CommandsVerify}

// secretsSetup holds what commands need to use secrets. The zero value means no secrets.
type secretsSetup struct {
	credentials   credential.Set          // with placeholders
	authority     *authority.Authority    // signs certificates for the secrets' hosts
	clientConfigs map[string]clientConfig // by kind of commands
}

// SetUpSecrets makes what commands need to use the job's secrets: placeholders, a certificate
// authority for the hosts, and clients' files. Set Credentials first. Call it once, before the
// first sandbox.
func (s *Sandboxes) SetUpSecrets() (err error) {
	s.secretsSetup = secretsSetup{clientConfigs: map[string]clientConfig{}}
	e := &s.secretsSetup
	if len(s.Credentials) > 0 {
		if e.credentials, err = s.withPlaceholders(); err != nil {
			return err
		}
		if e.authority, err = authority.New(e.credentials.Hosts()); err != nil {
			return err
		}
	}
	for _, kind := range kinds {
		if e.clientConfigs[kind], err = s.newClientConfig(kind); err != nil {
			return fmt.Errorf("make what commands use secrets by: %w", err)
		}
	}
	return nil
}

// withPlaceholders returns the credentials with the run's placeholders. It makes missing
// placeholders and saves them.
func (s *Sandboxes) withPlaceholders() (credential.Set, error) {
	kept := map[string]string{}
	if _, err := s.Record.ReadJSON(record.PlaceholdersFile, &kept); err != nil {
		return nil, fmt.Errorf("read the placeholders of secrets: %w", err)
	}
	all := slices.Clone(s.Credentials)
	for i, c := range all {
		if len(kept[c.Name]) != len(c.Value) { // the placeholder is missing, or is of an older secret
			kept[c.Name] = credential.NewPlaceholder(c.Value)
		}
		all[i].Placeholder = kept[c.Name]
	}
	if _, err := s.Record.MakeFolder(record.StateFolder); err != nil {
		return nil, err
	}
	return all, s.Record.WriteJSON(record.PlaceholdersFile, kept)
}

// credentialsAt returns all credentials of the run for a place. Those that the place does not get
// are marked Denied: a request with their placeholder is refused instead of sent.
func (s *Sandboxes) credentialsAt(p Place) credential.Set {
	set := slices.Clone(s.secretsSetup.credentials)
	for i, c := range set {
		set[i].Denied = !slices.ContainsFunc(s.secretsAt(p), func(secret job.Secret) bool { return secret.Name == c.Name })
	}
	return set
}

// secretsAt returns the secrets of a place's commands. Without a proxied network they get none.
func (s *Sandboxes) secretsAt(p Place) []job.Secret {
	network := p.Network
	if network.IsZero() {
		network = s.Job.Policy.Network
	}
	if !network.Listed() && network.Mode != string(sandbox.NetworkLoopback) {
		return nil
	}
	return secretsFor(s.Job, p.CommandKind)
}

// secretsFor returns the job's secrets for a kind of commands.
func secretsFor(j *job.Job, kind string) (own []job.Secret) {
	for _, secret := range j.Policy.Secrets {
		if secret.For(kind) {
			own = append(own, secret)
		}
	}
	return own
}

// entriesOf returns the hosts of secrets.
func entriesOf(secrets []job.Secret) (entries []job.Allowed) {
	for _, secret := range secrets {
		entries = append(entries, secret.Entries()...)
	}
	return entries
}

// proxied reports whether a place's commands use the network through agent-ci's proxy.
func (s *Sandboxes) proxied(p Place) bool {
	listed := p.Network.Listed() || p.Network.IsZero() && s.Job.Policy.Network.Listed()
	return listed || len(s.secretsAt(p)) > 0
}

// MostConfined returns a place that needs the strongest confinement of the job: with a proxy, if
// any command has one or there are secrets.
func (s *Sandboxes) MostConfined() Place {
	trial, all := Place{Scratch: ProbeScratch}, s.placesToTry()
	if i := slices.IndexFunc(all, s.proxied); i >= 0 {
		trial.Network, trial.CommandKind = all[i].Network, all[i].CommandKind
	}
	return trial
}

// placesToTry returns the places whose confinement must be tried. It includes secrets that no
// command gets, because unconfined commands could read their files.
func (s *Sandboxes) placesToTry() []Place {
	all := s.places()
	for _, secret := range s.Job.Policy.Secrets {
		for _, kind := range secret.Commands {
			all = append(all, Place{CommandKind: kind})
		}
	}
	return all
}

// UnusableSecrets returns the names of secrets that no command can use.
func (s *Sandboxes) UnusableSecrets() (names []string) {
	for _, secret := range s.Job.Policy.Secrets {
		if !slices.ContainsFunc(s.places(), func(p Place) bool {
			return slices.ContainsFunc(s.secretsAt(p), func(own job.Secret) bool { return own.Name == secret.Name })
		}) {
			names = append(names, secret.Name)
		}
	}
	return names
}

// places returns the places of the job's commands: the agent's, setup's and the checks'.
func (s *Sandboxes) places() []Place {
	all := []Place{AgentPlace()}
	for _, step := range s.Job.Setup {
		all = append(all, Place{CommandKind: job.CommandsSetup, Network: step.Network})
	}
	if len(s.Job.Verify) > 0 {
		all = append(all, Place{CommandKind: job.CommandsVerify})
	}
	return all
}

// SecretsWords returns a line for people about each secret of the job.
func (s *Sandboxes) SecretsWords() []string {
	words := []string{}
	for _, secret := range s.Job.Policy.Secrets {
		words = append(words, secretsWords([]job.Secret{secret})+", of "+strings.Join(secret.Commands, ", "))
	}
	return words
}

// secretsWords describes what secrets are for, and where requests contain them.
func secretsWords(own []job.Secret) string {
	words := make([]string, len(own))
	for i, secret := range own {
		words[i] = secret.Name + " for " + strings.Join(secret.Hosts, ", ") + " (" + cmp.Or(strings.Join(secret.Methods, ", "), "git fetch") + ", " + placeholderPlaces(secret) + ")"
	}
	return strings.Join(words, "; ")
}

func placeholderPlaces(secret job.Secret) string {
	if secret.Parameter != "" {
		return "parameter " + secret.Parameter
	}
	return "header " + secret.Header
}

// useWords describes the secrets of commands to the model. It returns "" if they have none.
func useWords(own []job.Secret) string {
	if len(own) == 0 {
		return ""
	}
	return "; secrets: " + secretsWords(own) + "; variables and files hold placeholders, which the proxy replaces in requests to these hosts and refuses elsewhere"
}

// cannotShowFile returns the outcome for a client's file that cannot be shown to commands.
func cannotShowFile(path string, err error) error {
	return outcome.Stopf(outcome.InvalidInput, "secret",
		"A preset of policy.secrets needs %s for its placeholder: the file is missing, and commands may change its folder; create the file, or remove the folder from policy.writable.", path).Because(err)
}
