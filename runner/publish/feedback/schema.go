package feedback

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Limits of the agent's object: elements of the list of findings, and characters of texts.
const (
	maxFindings = 50
	maxTitle    = 200
	maxText     = 10_000
	maxComment  = 50_000
)

// Objects that the agent returns, one type for each value of publish.as.
type (
	reviewObject struct {
		Summary  string    `json:"summary"`
		Findings []finding `json:"findings"`
	}
	finding struct {
		Path     string `json:"path"`
		Line     int    `json:"line"`
		EndLine  int    `json:"end_line"`
		Severity string `json:"severity"`
		Title    string `json:"title"`
		Body     string `json:"body"`
	}
	labelsObject struct {
		Labels []string `json:"labels"`
		Reason string   `json:"reason"`
	}
	commentObject struct {
		Comment string `json:"comment"`
	}
)

type object = map[string]any

// Schema returns the JSON Schema of the object that the agent has to return.
func Schema(p job.Publish) (settings.OutputSchema, error) {
	properties := map[string]object{
		job.AsReview: {
			"summary":  textSchema(maxText, "What the pull request does and what you think of it, in a few sentences of Markdown."),
			"findings": object{"type": "array", "maxItems": maxFindings, "items": closedObject(findingProperties)},
		},
		job.AsLabels: {
			"labels": object{"type": "array", "items": object{"type": "string", "enum": p.Labels}, "description": "Those that fit; none if none does."},
			"reason": textSchema(maxText, "Why, in a sentence."),
		},
		job.AsComment: {"comment": textSchema(maxComment, "The comment, in Markdown.")},
	}[p.As]
	raw, err := json.Marshal(closedObject(properties))
	if err != nil {
		return settings.OutputSchema{}, fmt.Errorf("encode the schema of publish.as: %w", err)
	}
	return settings.ParseOutputSchema(raw)
}

var findingProperties = object{
	"path":     textSchema(4096, "The file, as the diff names it."),
	"line":     object{"type": "integer", "minimum": 1, "description": "The first line that the finding is about: a number of the new file that stands in the diff."},
	"end_line": object{"type": "integer", "minimum": 1, "description": "The last one, in the same hunk; the same as line for one line."},
	"severity": object{"type": "string", "enum": []string{"high", "medium", "low"}},
	"title":    textSchema(maxTitle, "The finding on one line."),
	"body":     textSchema(maxText, "What is wrong, why, and what to do, in Markdown."),
}

// textSchema returns the schema of a text that is not empty.
func textSchema(maxLength int, description string) object {
	return object{"type": "string", "minLength": 1, "maxLength": maxLength, "description": description}
}

// closedObject returns the schema of an object with exactly these properties, all required.
func closedObject(properties object) object {
	required := make([]string, 0, len(properties))
	for name := range properties {
		required = append(required, name)
	}
	slices.Sort(required)
	return object{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
}
