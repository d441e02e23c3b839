package agents

import (
	"fmt"
	"strings"
)

// messageArguments is a message for an agent: a text, or a list of items.
type messageArguments struct {
	Message string `json:"message"`
	Items   []item `json:"items"`
}

// item is a part of a message.
type item struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image string `json:"image_url"`
	Path  string `json:"path"`
	Name  string `json:"name"`
}

// text returns the message as text. It returns a *Refusal, which names tool, for an empty message or one given twice.
func (a messageArguments) text(tool string) (text string, err error) {
	if a.Message != "" && len(a.Items) > 0 {
		return "", Refusef("%s: give the message by message or by items, not by both.", tool)
	}
	parts := []string{a.Message}
	for _, i := range a.Items {
		parts = append(parts, i.asText())
	}
	if text = strings.TrimSpace(strings.Join(parts, "\n")); text == "" {
		return "", Refusef("%s: the message is empty; say what the agent is to do.", tool)
	}
	return text, nil
}

// asText returns an item as text. For an image or file that is its path, which the agent can open.
func (i item) asText() string {
	switch i.Type {
	case "image":
		return "[image: " + i.Image + "]"
	case "local_image":
		return "[image: " + i.Path + "]"
	case "skill", "mention":
		return fmt.Sprintf("[%s: %s %s]", i.Type, i.Name, i.Path)
	}
	return i.Text
}
