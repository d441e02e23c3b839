package transcript

import (
	"slices"
	"strings"
)

// SecretUsed reports requests of commands with a secret: before the first one, before each doubling
// of the count, and with the final count.
type SecretUsed struct {
	By     string `json:"by"`              // the sandbox: agent, setup, verify-N
	Name   string `json:"name"`            // of the secret in the job
	Target string `json:"target"`          // host and port
	Uses   int    `json:"uses"`            // requests so far, by these commands to this host
	Ended  bool   `json:"ended,omitempty"` // the commands have ended: no use is left to tell
}

// SecretUse is how often commands used a secret for a host.
type SecretUse struct {
	SecretUsed
	Incomplete bool // they were killed once, before all uses were told
}

// Count says in words how many requests there were.
func (u SecretUse) Count() string {
	count := Thousands(int64(u.Uses))
	if u.Incomplete || !u.Ended {
		return "at least " + count
	}
	return count
}

// SecretRule begins the rule of a request refused for a misplaced placeholder. The names of its
// secrets follow, separated by commas.
const SecretRule = "policy.secrets: "

// Secret is the use of one secret in a run.
type Secret struct {
	Name    string
	Uses    []SecretUse // with the highest count of each place and host, as they came
	Refused []Network   // requests that it, or its placeholder, is not for
}

func (f *fold) secretUsed(_ Event, d SecretUsed) {
	s := f.view.secretNamed(d.Name)
	i := slices.IndexFunc(s.Uses, func(known SecretUse) bool { return known.By == d.By && known.Target == d.Target })
	if i < 0 {
		s.Uses = append(s.Uses, SecretUse{SecretUsed: d})
		return
	}
	known := &s.Uses[i]
	known.Uses, known.Ended = max(known.Uses, d.Uses), d.Ended
}

// markUsesLost marks the counts since the last report as unknown after a kill.
func (v *View) markUsesLost() {
	for _, s := range v.Secrets {
		for i := range s.Uses {
			s.Uses[i].Incomplete = s.Uses[i].Incomplete || !s.Uses[i].Ended
		}
	}
}

func (f *fold) network(_ Event, d Network) {
	names, is := strings.CutPrefix(d.Rule, SecretRule)
	if !is || d.Allowed {
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
