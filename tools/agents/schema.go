package agents

import (
	"encoding/json"
	"strings"
)

// Schema parts of several tools.
const (
	messageSchema = `"message":{"type":"string","description":"What the agent is to do, or to know."}`
	roleSchema    = `"agent_type":{"type":"string","description":"The agent's role."}`
	modelSchema   = `"model":{"type":"string","description":"Its model, where it is to be another."},` +
		`"reasoning_effort":{"type":"string","description":"Its reasoning effort, where that is to be another."}`
	tierSchema    = `"service_tier":{"type":"string","description":"Its tier of service, where that is to be another."}`
	pathsSchema   = `"paths":{"type":"array","items":{"type":"string"},"description":"Files and folders that it alone may change; nothing else of its change is taken over. Without them, all."}`
	targetSchema  = `"target":{"type":"string","description":"The agent's id or nickname."}`
	idSchema      = `"id":{"type":"string","description":"The agent's id or nickname."}`
	timeoutSchema = `"timeout_ms":{"type":"number","description":"How long to wait at most, in milliseconds: 10000 to 3600000, by default 30000. Longer waits cost less than many short ones."}`
)

// closedSchema returns the JSON Schema of an object that may have only these properties. Each has the form "name":{…}.
func closedSchema(properties []string, required ...string) json.RawMessage {
	list, _ := json.Marshal(append([]string{}, required...)) // encoding strings cannot fail
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":` + string(list) + `,"additionalProperties":false}`)
}

// itemsSchema describes the items of a message.
const itemsSchema = `"items":{"type":"array","description":"The message in parts, in place of message.","items":{"type":"object","properties":{` +
	`"type":{"type":"string","enum":["text","image","local_image","skill","mention"]},` +
	`"text":{"type":"string"},"image_url":{"type":"string"},"path":{"type":"string"},"name":{"type":"string"}` +
	`},"required":["type"],"additionalProperties":false}}`
