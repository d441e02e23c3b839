package agent

import (
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// dropUndecryptable removes items that the endpoint can no longer decrypt. It removes the encrypted reasoning. If
// there is none, it removes all items that another model could not read. removed is false if there are none either.
func (c *Conversation) dropUndecryptable(failure *model.Failure) (removed bool, err error) {
	unsealed, dropped, changed, err := rawitem.WithoutProviderTies(c.history)
	if err != nil {
		return false, err
	}
	if changed {
		c.Warn("sealed_reasoning", "The model's API can't read its earlier reasoning; the request is repeated without it: %s", failure.Detail())
		return true, c.replaceRefused(unsealed, dropped)
	}
	dropped, lost := unreadableItems(c.history)
	if len(dropped) == 0 {
		return false, nil
	}
	c.Warn("sealed_reasoning", "The model's API can't read its shortened conversation; the request is repeated without it: %s", failure.Detail())
	if err := c.replaceRefused(c.history, dropped); err != nil {
		return true, err
	}
	if lost == "" { // nothing that the model must know
		return true, nil
	}
	return true, c.Tell(fmt.Sprintf(lostItemsText, lost))
}

// replaceRefused replaces the refused history by items, leaving out those at the indexes dropped.
func (c *Conversation) replaceRefused(items []json.RawMessage, dropped []int) error {
	pinnedBefore := c.pinnedItems
	for _, index := range dropped {
		if index < pinnedBefore {
			c.pinnedItems--
		}
	}
	err := c.adoptCompaction(&compaction{method: "repair", items: rawitem.WithoutIndexes(items, dropped), before: c.tokens()}, transcript.RefusedItems)
	c.compactedTokens = 0 // this saved nothing, so a compaction may follow at once
	return err
}
