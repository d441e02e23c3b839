package transcript

import (
	"slices"
	"strings"
)

// SecretUsed reports how many requests were made with a secret. It is recorded before the first
// request, whenever the count has doubled, and with the final count.
type SecretUsed struct {
	Sandbox string `json:"by"`              // the sandbox: agent, setup, verify-N
	Name    string `json:"name"`            // of the secret in the job
	Target  string `json:"target"`          // host and port
	Uses    int    `json:"uses"`            // requests so far, by these commands to this host
	Ended   bool   `json:"ended,omitempty"` // the commands have ended and the count is final
}

// SecretUse is the latest count of a secret's uses by some commands for a host.
type SecretUse struct {
	SecretUsed
	Incomplete bool // the commands were killed, so the count may be too low
}

// DescribeCount returns the number of requests in words.
func (u SecretUse) DescribeCount() string {
	count := GroupThousands(u.Uses)
	if u.Incomplete || !u.Ended {
		return "at least " + count
	}
	return count
}

// SecretRule is the beginning of Rule for a request that was refused because a placeholder was in
// the wrong place. The names of the secrets follow, separated by commas.
const SecretRule = "policy.secrets: "

// Secret is the use of one secret in a run.
type Secret struct {
	Name      string
	UseCounts []SecretUse   // the highest count for each sandbox and host, in order
	Refused   []HostRequest // requests that were refused because of the secret
}

// secretUsed adds a count of uses, or updates it. The highest count stays.
func (f *Folder) secretUsed(d SecretUsed) {
	s := f.view.secretNamed(d.Name)
	i := slices.IndexFunc(s.UseCounts, func(known SecretUse) bool { return known.Sandbox == d.Sandbox && known.Target == d.Target })
	if i < 0 {
		s.UseCounts = append(s.UseCounts, SecretUse{SecretUsed: d})
		return
	}
	known := &s.UseCounts[i]
	known.Uses, known.Ended = max(known.Uses, d.Uses), d.Ended
}

// markUsesIncomplete marks counts that were not final when the run was killed.
func (v *View) markUsesIncomplete() {
	for _, s := range v.Secrets {
		for i := range s.UseCounts {
			s.UseCounts[i].Incomplete = s.UseCounts[i].Incomplete || !s.UseCounts[i].Ended
		}
	}
}

// network adds a refused request to the secrets for which it was refused. It ignores other requests.
func (f *Folder) network(d HostRequest) {
	names, refusedForSecrets := strings.CutPrefix(d.Rule, SecretRule)
	if !refusedForSecrets || d.Allowed {
		return
	}
	for name := range strings.SplitSeq(names, ", ") {
		s := f.view.secretNamed(name)
		s.Refused = append(s.Refused, d)
	}
}

// secretNamed returns the secret called name, adding it to the view if it is new.
func (v *View) secretNamed(name string) *Secret {
	i := slices.IndexFunc(v.Secrets, func(s Secret) bool { return s.Name == name })
	if i < 0 {
		v.Secrets = append(v.Secrets, Secret{Name: name})
		i = len(v.Secrets) - 1
	}
	return &v.Secrets[i]
}
