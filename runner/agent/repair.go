package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// unseal removes items this endpoint cannot decrypt: first reasoning, then everything another model
// could not read. It reports whether it found any.
func (c *Conversation) unseal(failure *model.Failure) (bool, error) {
	open, left, changed, err := rawitem.Unsealed(c.history)
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

// rewrite replaces a refused conversation. left are the places of removed items.
func (c *Conversation) rewrite(items []json.RawMessage, left []int) error {
	for _, place := range slices.Backward(left) {
		if place < c.pinned {
			c.pinned--
		}
	}
	err := c.adopt(&compaction{method: "repair", items: rawitem.Without(items, left), before: c.tokens()}, transcript.Refused)
	c.settled = 0
	return err
}
