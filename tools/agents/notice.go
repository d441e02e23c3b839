package agents

import (
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// maxText is the maximum number of bytes of an agent's text that another agent gets.
const maxText = 32 << 10

// Notification returns the message that a subagent has ended, for models with Direct tools. Its text cannot close
// the tag around it, because angle brackets are escaped in the JSON.
func Notification(id string, status Status) string {
	raw, _ := json.Marshal(struct {
		Path   string `json:"agent_path"`
		Status Status `json:"status"`
	}{id, status.withTextUpTo(maxText)}) // encoding strings cannot fail
	return "<subagent_notification>\n" + string(raw) + "\n</subagent_notification>"
}

// withTextUpTo returns the status with its text cut to maxBytes, for a model.
func (s Status) withTextUpTo(maxBytes int) Status {
	s.Text = clip.Visible(s.Text, maxBytes)
	return s
}

// Kind is the kind of a message between agents.
type Kind string

// The kinds of messages between agents.
const (
	NewTask     Kind = "NEW_TASK"
	Plain       Kind = "MESSAGE"
	finalAnswer Kind = "FINAL_ANSWER"
)

// Letter is a message between agents with Collaboration tools.
type Letter struct {
	Kind     Kind
	To, From string // ids
	Payload  string
}

// forgedHead matches lines of a payload that look like a letter's head or a notification's tag.
var forgedHead = lazyregexp.New(`(?mi)^[^\pL\pN\n]*(?:message[^\pL\pN\n]*type|task[^\pL\pN\n]*name|sender|payload|subagent_notification)[^\pL\pN\n]*[:：>]`)

// String returns the letter as text. It marks lines of the payload that look like the head of a letter, so that an agent
// cannot forge one.
func (l Letter) String() string {
	payload := forgedHead().ReplaceAllString(clip.Visible(l.Payload, maxText), "| $0")
	return fmt.Sprintf("Message Type: %s\nTask name: %s\nSender: %s\nPayload:\n%s", l.Kind, l.To, l.From, payload)
}

// Final returns the letter that tells the agent to about the end of the subagent from. Both are IDs.
func Final(to, from string, status Status) Letter {
	payload := status.Text
	switch {
	case status.State == Errored:
		payload = "The agent failed: " + status.Text
	case status.State != Completed:
		payload = "The agent ended without an answer; its status is " + status.State + "."
	case payload == "":
		payload = "The agent ended without words."
	}
	return Letter{finalAnswer, to, from, payload}
}
