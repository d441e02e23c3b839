package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"github.com/agent-ci/agent-ci/internal/clip"
)

// mostText is how many bytes of the words of an agent another one gets.
const mostText = 32 << 10

// Notification is what the user tells an agent that leads others by the tools of Direct when one of
// those has ended. JSON writes the angle brackets of the text by their numbers, so that none of it
// can end the mark.
func Notification(id string, status Status) (string, error) {
	raw, err := json.Marshal(struct {
		Path   string `json:"agent_path"`
		Status Status `json:"status"`
	}{id, status.shown(mostText)})
	if err != nil {
		return "", fmt.Errorf("encode the notification of %s: %w", id, err)
	}
	return "<subagent_notification>\n" + string(raw) + "\n</subagent_notification>", nil
}

// shown is the status with words that can be shown to a model, of so many bytes.
func (s Status) shown(most int) Status {
	s.Text = clip.Visible(s.Text, most)
	return s
}

// Kind is what a message between agents is.
type Kind string

// The kinds of messages between agents.
const (
	NewTask     Kind = "NEW_TASK"
	Plain       Kind = "MESSAGE"
	FinalAnswer Kind = "FINAL_ANSWER"
)

// Letter is a message between agents that lead, or are led, by the tools of Collaboration.
type Letter struct {
	Kind     Kind
	To, From string // ids
	Payload  string
}

// heading is a line of a payload that reads like the head of a letter, or like the mark of a
// notification.
var heading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?mi)^[^\pL\pN\n]*(?:message[^\pL\pN\n]*type|task[^\pL\pN\n]*name|sender|payload|subagent_notification)[^\pL\pN\n]*[:：>]`)
})

// String is the letter as text. Lines of the payload that read like a head are quoted: the first
// head is the only one.
func (l Letter) String() string {
	payload := heading().ReplaceAllString(clip.Visible(l.Payload, mostText), "| $0")
	return fmt.Sprintf("Message Type: %s\nTask name: %s\nSender: %s\nPayload:\n%s", l.Kind, l.To, l.From, payload)
}

// Final is the letter by which an agent that was led by the tools of Collaboration ends.
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
	return Letter{FinalAnswer, to, from, payload}
}
