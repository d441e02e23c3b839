package feedback

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Limits of the agent's object: elements of the list of findings, and characters of a comment.
const (
	maxFindings = 50
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
	}
	commentObject struct {
		Comment string `json:"comment"`
	}
)

// schemas has the JSON Schema of the object for each value of publish.as. LABELS stands for the labels of the job,
// MAX_FINDINGS and MAX_COMMENT for the limits.
var schemas = map[string]string{
	job.AsReview: `{
		"additionalProperties": false,
		"properties": {
			"findings": {
				"items": {
					"additionalProperties": false,
					"properties": {
						"body": {"description": "What is wrong, why, and what to do, in Markdown.", "maxLength": 10000, "minLength": 1, "type": "string"},
						"end_line": {"description": "The last one, in the same hunk; the same as line for one line.", "minimum": 1, "type": "integer"},
						"line": {"description": "The first line that the finding is about: a number of the new file that stands in the diff.", "minimum": 1, "type": "integer"},
						"path": {"description": "The file, as the diff names it.", "maxLength": 4096, "minLength": 1, "type": "string"},
						"severity": {"enum": ["high", "medium", "low"], "type": "string"},
						"title": {"description": "The finding on one line.", "maxLength": 200, "minLength": 1, "type": "string"}
					},
					"required": ["body", "end_line", "line", "path", "severity", "title"],
					"type": "object"
				},
				"maxItems": MAX_FINDINGS,
				"type": "array"
			},
			"summary": {"description": "What the pull request does and what you think of it, in a few sentences of Markdown.", "maxLength": 10000, "minLength": 1, "type": "string"}
		},
		"required": ["findings", "summary"],
		"type": "object"
	}`,
	job.AsLabels: `{
		"additionalProperties": false,
		"properties": {
			"labels": {"description": "Those that fit; none if none does.", "items": {"enum": LABELS, "type": "string"}, "type": "array"},
			"reason": {"description": "Why, in a sentence.", "maxLength": 10000, "minLength": 1, "type": "string"}
		},
		"required": ["labels", "reason"],
		"type": "object"
	}`,
	job.AsComment: `{
		"additionalProperties": false,
		"properties": {"comment": {"description": "The comment, in Markdown.", "maxLength": MAX_COMMENT, "minLength": 1, "type": "string"}},
		"required": ["comment"],
		"type": "object"
	}`,
}

// Schema returns the JSON Schema of the object that the agent has to return.
func Schema(p job.Publish) (settings.OutputSchema, error) {
	labels, err := json.Marshal(p.Labels)
	if err != nil {
		return settings.OutputSchema{}, fmt.Errorf("encode the schema of publish.as: %w", err)
	}
	values := strings.NewReplacer("LABELS", string(labels), "MAX_FINDINGS", strconv.Itoa(maxFindings), "MAX_COMMENT", strconv.Itoa(maxComment))
	return settings.ParseOutputSchema([]byte(values.Replace(schemas[p.As])))
}
