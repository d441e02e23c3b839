package agent

import (
	"encoding/json"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// repair changes what an API refuses in any conversation, also in that of a run which an earlier
// version began: calls that share an id. It reports whether there was such a thing.
func (c *Conversation) repair() (bool, error) {
	distinct, changed, err := model.Distinct(c.history)
	if err != nil || !changed {
		return false, err
	}
	c.warn("call_ids", "Calls of the conversation have ids that are missing or come twice; from here on each has one of its own.")
	return true, c.rewrite(distinct)
}

// rewrite puts a conversation that the API may take in the place of the one that it refused.
func (c *Conversation) rewrite(items []json.RawMessage) error {
	err := c.adopt(&compaction{method: "repair", items: items, before: c.tokens()}, transcript.Refused)
	c.settled = 0
	return err
}
