package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// maxOutputAttempts is how many answers the model may give until one fits the schema.
const maxOutputAttempts = 2

// Output asks the model, in a separate request, for the task's result as a JSON value that fits schema. check
// returns an error for a value that does not fit. If no attempt fits, mismatch is the error of the last one. err
// is the error of the request.
func (c *Conversation) Output(ctx context.Context, schema json.RawMessage, check func(json.RawMessage) error) (value json.RawMessage, mismatch, err error) {
	settings := c.Settings
	settings.WordsOnly, settings.Schema = true, schema
	order := "Now give the result of the task as one JSON value that fits this schema, and nothing else: " + string(schema)
	for range maxOutputAttempts {
		if err := c.Tell(order); err != nil {
			return nil, nil, err
		}
		if err := c.stopIfOverLimit(); err != nil {
			return nil, nil, err
		}
		answer, err := c.turn(ctx, settings)
		if err != nil {
			return nil, nil, err
		}
		outputs, _, err := answer.outputs() // the model should make no calls; refuse them
		if err != nil {
			return nil, nil, err
		}
		c.AddItems(outputs...)
		value = json.RawMessage(answer.Text())
		if mismatch = check(value); mismatch == nil {
			return value, nil, nil
		}
		order = fmt.Sprintf("That does not fit the schema: %v. Give the corrected JSON value and nothing else.", mismatch)
	}
	return nil, mismatch, nil
}
