package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// unseal leaves out what a provider sealed, which this endpoint can't open: reasoning first, then
// all that another model could not read. It reports whether there was such a thing.
func (c *Conversation) unseal(failure *model.Failure) (bool, error) {
	open, left, changed, err := model.Unsealed(c.history)
	if err != nil {
		return false, err
	}
	if changed {
		c.warn("sealed_reasoning", "The model's API can't read its earlier reasoning; the request is repeated without it: %s", failure.Detail())
		return true, c.rewrite(open, left)
	}
	left, lost := unreadable(c.history)
	if len(left) == 0 {
		return false, nil
	}
	c.warn("sealed_reasoning", "The model's API can't read its shortened conversation; the request is repeated without it: %s", failure.Detail())
	if err := c.rewrite(c.history, left); err != nil || lost == "" {
		return true, err
	}
	return true, c.Tell(fmt.Sprintf(lostWords, lost))
}

// rewrite puts a conversation that the API may take in the place of the one that it refused.
// left are places of items that are left out.
func (c *Conversation) rewrite(items []json.RawMessage, left []int) error {
	for _, place := range slices.Backward(left) {
		if place < c.pinned {
			c.pinned--
		}
	}
	err := c.adopt(&compaction{method: "repair", items: model.Without(items, left), before: c.tokens()}, transcript.Refused)
	c.settled = 0
	return err
}
