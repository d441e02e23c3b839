package transcript

import (
	"slices"
	"strings"
)

// SecretUsed says that a secret of the job went out with a request of commands: the first
// time before it did, and with the count once the commands had ended.
type SecretUsed struct {
	By     string `json:"by"`     // the sandbox: agent, setup, verify-N
	Name   string `json:"name"`   // of the secret in the job
	Target string `json:"target"` // host and port
	Uses   int    `json:"uses"`   // requests so far, by these commands to this host
}

// SecretRule begins the rule of a refused request that had a placeholder where it has no
// business; the name of the secret follows.
const SecretRule = "policy.secrets: "

// Secret is what became of one secret of a run.
type Secret struct {
	Name    string
	Uses    []SecretUsed // with the highest count of each place and host, as they came
	Refused []Network    // requests that had its placeholder elsewhere
}

func (f *fold) secretUsed(_ Event, d SecretUsed) {
	s := f.view.secret(d.Name)
	i := slices.IndexFunc(s.Uses, func(known SecretUsed) bool { return known.By == d.By && known.Target == d.Target })
	if i < 0 {
		s.Uses = append(s.Uses, d)
		return
	}
	s.Uses[i].Uses = max(s.Uses[i].Uses, d.Uses)
}

func (f *fold) network(_ Event, d Network) {
	if name, is := strings.CutPrefix(d.Rule, SecretRule); is && !d.Allowed {
		s := f.view.secret(name)
		s.Refused = append(s.Refused, d)
	}
}

// secret is the one of that name, which is added where the view has none.
func (v *View) secret(name string) *Secret {
	i := slices.IndexFunc(v.Secrets, func(s Secret) bool { return s.Name == name })
	if i < 0 {
		v.Secrets = append(v.Secrets, Secret{Name: name})
		i = len(v.Secrets) - 1
	}
	return &v.Secrets[i]
}
