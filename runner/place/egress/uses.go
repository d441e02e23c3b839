package egress

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// uses counts the requests that credentials were sent with. The zero value is ready to use.
type uses struct {
	mu     sync.Mutex
	counts map[use]count
}

// use is a credential with the commands that used it and its target. count has the number of uses,
// and how many of them are recorded.
type (
	use   struct{ by, name, target string }
	count struct{ uses, recorded int }
)

// countUse counts a request before it is sent with a credential. It records the first use, and every time
// the count has doubled. So each used credential is recorded, and the record of a killed run has at least
// half of the count.
func (c *Control) countUse(by, name string, to reach.Target) error {
	u := &c.uses
	u.mu.Lock()
	defer u.mu.Unlock()
	key := use{by, name, to.String()}
	counted, known := u.counts[key]
	if !known {
		counted.uses = c.usedBefore(key)
	}
	counted.uses++
	isDue := counted.uses >= 2*counted.recorded // always true for the first use
	if isDue {
		if err := c.recordUse(key.event(counted.uses)); err != nil {
			return err
		}
		counted.recorded = counted.uses
	}
	if u.counts == nil {
		u.counts = make(map[use]count)
	}
	u.counts[key] = counted
	return nil
}

// usedBefore returns the number of uses before a resume.
func (c *Control) usedBefore(key use) int {
	for _, secret := range c.EarlierUses {
		for _, known := range secret.UseCounts {
			if (use{known.Sandbox, known.Name, known.Target}) == key {
				return known.Uses
			}
		}
	}
	return 0
}

// recordFinalUses records the final counts of commands after their proxy has stopped.
func (c *Control) recordFinalUses(by string) {
	u := &c.uses
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []use
	for key, counted := range u.counts {
		if key.by == by && counted.recorded > 0 {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.target, b.target)) })
	for _, key := range all {
		final := key.event(u.counts[key].uses)
		final.Ended = true
		if err := c.recordUse(final); err != nil {
			c.Record.Warn("secret_uses", "The transcript lacks the number of uses of the secret %s: %v.", key.name, err)
			return
		}
		u.counts[key] = count{uses: final.Uses} // a later proxy records its first use again
	}
}

// event returns the event that commands have used a credential uses times so far.
func (u use) event(uses int) transcript.SecretUsed {
	return transcript.SecretUsed{Sandbox: u.by, Name: u.name, Target: u.target, Uses: uses}
}

func (c *Control) recordUse(event transcript.SecretUsed) error {
	if err := c.Record.Append(event); err != nil {
		return fmt.Errorf("record the use of a secret: %w", err)
	}
	return nil
}
