package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// outputAttempts is how often the model may try to fit the schema.
const outputAttempts = 2

// Output requests the task's result as a JSON value by a schema, in a separate request: earlier
// answers need not fit. check returns a value's error. The second result is the last value's error.
func (c *Conversation) Output(ctx context.Context, schema json.RawMessage, check func(json.RawMessage) error) (json.RawMessage, error, error) {
	settings := c.Settings
	settings.WordsOnly, settings.Schema = true, schema
	order := "Now give the result of the task as one JSON value that fits this schema, and nothing else: " + string(schema)
	var wrong error
	for range outputAttempts {
		if err := c.Tell(order); err != nil {
			return nil, nil, err
		}
		if err := c.stopOverLimits(); err != nil {
			return nil, nil, err
		}
		said, err := c.turn(ctx, settings)
		if err != nil {
			return nil, nil, err
		}
		outputs, _, err := said.outputs() // of calls that it should not have made
		if err != nil {
			return nil, nil, err
		}
		c.Add(outputs...)
		value := json.RawMessage(said.Text())
		if wrong = check(value); wrong == nil {
			return value, nil, nil
		}
		order = fmt.Sprintf("That does not fit the schema: %v. Give the corrected JSON value and nothing else.", wrong)
	}
	return nil, wrong, nil
}
