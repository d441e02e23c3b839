package confine

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// uses counts in how many requests credentials went out. The zero value is ready.
type uses struct {
	mu     sync.Mutex
	counts map[use]count
}

// use is a credential with its user and target; count has the uses, and the uses already recorded.
type (
	use   struct{ scratch, name, target string }
	count struct{ uses, recorded int }
)

// noteUse counts a request with a credential before it is sent. It records the commands' first one
// and each doubling, so nothing unrecorded has an effect, and a killed run has recorded most.
func (s *Sandboxes) noteUse(by, name string, to reach.Target) error {
	u := &s.uses
	u.mu.Lock()
	defer u.mu.Unlock()
	of := use{by, name, to.String()}
	counted, known := u.counts[of]
	if !known {
		counted.uses = s.usedBefore(of)
	}
	counted.uses++
	if counted.recorded == 0 || counted.uses >= 2*counted.recorded {
		if err := s.recordUse(of, counted.uses, false); err != nil {
			return err
		}
		counted.recorded = counted.uses
	}
	if u.counts == nil {
		u.counts = make(map[use]count)
	}
	u.counts[of] = counted
	return nil
}

// usedBefore returns the uses before a resume.
func (s *Sandboxes) usedBefore(of use) int {
	for _, secret := range s.EarlierUses {
		for _, known := range secret.Uses {
			if (use{known.By, known.Name, known.Target}) == of {
				return known.Uses
			}
		}
	}
	return 0
}

// recordUses records how often commands of a place used credentials, once their proxy has
// ended.
func (s *Sandboxes) recordUses(by string) {
	u := &s.uses
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []use
	for of, counted := range u.counts {
		if of.scratch == by && counted.recorded > 0 {
			all = append(all, of)
		}
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.target, b.target)) })
	for _, of := range all {
		if err := s.recordUse(of, u.counts[of].uses, true); err != nil {
			s.Record.Warn("secret_uses", "The transcript lacks the number of uses of the secret %s: %v.", of.name, err)
			return
		}
		u.counts[of] = count{uses: u.counts[of].uses}
	}
}

func (s *Sandboxes) recordUse(of use, uses int, ended bool) error {
	event := transcript.SecretUsed{By: of.scratch, Name: of.name, Target: of.target, Uses: uses, Ended: ended}
	if err := s.Record.Append(transcript.TypeSecretUsed, event); err != nil {
		return fmt.Errorf("record the use of a secret: %w", err)
	}
	return nil
}
