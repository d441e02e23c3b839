package egress

import (
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Control decides which hosts the commands of one run reach, and with which secrets. Set the
// exported fields before the first call, and do not change them later.
type Control struct {
	Record  *record.Record
	Environ settings.Environment // of agent-ci
	Job     *job.Job
	Rules   *rules.Set // for commands and hosts
	// Credentials are the job's secrets with their values (settings.ReadCredentials).
	Credentials credential.Set
	// EarlierUses has the uses of secrets before a resume, so that the count continues.
	EarlierUses []transcript.Secret
	// Authorities are certificate authorities for listed hosts, besides the machine's.
	Authorities settings.Authorities

	setup secretsSetup
	hosts hosts // the hosts that commands asked for
	uses  uses  // of secrets
}

// Commands describes commands that use the network.
type Commands struct {
	Name    string      // of the commands, in events
	Network job.Network // zero for that of the job's policy
	Key     string      // the job's key that sets Network
	Kind    string      // decides which secrets they get, such as job.CommandsAgent; "" for none
}

// Agent is the name of the agent's commands in events.
const Agent = "agent"

// agentCommands describes the agent's commands.
var agentCommands = Commands{Name: Agent, Kind: job.CommandsAgent}

// CommandEnv returns the environment of commands: allowed variables and the job's additions.
func (c *Control) CommandEnv() []string {
	return policy.Environment(c.Environ, c.Job.Policy.Env.Pass, c.Job.Policy.Env.Set)
}

// DescribeAgentNetwork describes the network of the agent's commands to people.
func (c *Control) DescribeAgentNetwork(level sandbox.Level) string {
	network, secrets := c.Job.Policy.Network, c.secretsOf(agentCommands)
	switch {
	case level == sandbox.LevelNone:
		return string(sandbox.NetworkFull)
	case level == sandbox.LevelLandlock && network.Mode == string(sandbox.NetworkLoopback):
		return string(sandbox.NetworkNone) // a loopback of their own needs a network namespace
	case len(secrets) == 0:
		return network.String()
	}
	words := network.String() + "; by secrets: " + describeSecrets(secrets)
	if network.UsesMachineProxy() && !network.HasList() { // with a list, String says it
		words += "; by the machine's proxy"
	}
	return words
}

// DescribeAgentNetworkToModel describes the network of the agent's commands to the model.
func (c *Control) DescribeAgentNetworkToModel(level sandbox.Level) string {
	network, secrets := c.Job.Policy.Network, c.secretsOf(agentCommands)
	if network.HasList() {
		return "these hosts alone, on ports 80 (http) and 443 (https) unless one is given, through the proxy that HTTP_PROXY and HTTPS_PROXY name: " +
			describeHosts(network) + "; names do not resolve without it; 127.0.0.1 is of these commands alone and needs no proxy" + describeSecretsToModel(secrets)
	}
	if len(secrets) > 0 {
		return "loopback: 127.0.0.1 of these commands alone; of the outside what secrets are for, by https through the proxy that HTTPS_PROXY names, and nothing else" + describeSecretsToModel(secrets)
	}
	return map[string]string{
		string(sandbox.NetworkNone):     "none: not even 127.0.0.1",
		string(sandbox.NetworkLoopback): "loopback: 127.0.0.1 of these commands alone; nothing outside can be reached",
		string(sandbox.NetworkFull):     "whatever this machine reaches",
	}[c.DescribeAgentNetwork(level)]
}
