package extensions

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// embeddedFile in the run directory describes the tools of the program that embeds agent-ci. A replay reads
// it, because that program is then missing.
const embeddedFile = extensionsFolder + "/program.json"

// embeddedTool is the record of one tool of the embedding program.
type embeddedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Mutates     bool            `json:"mutates"`
}

// embeddedRecords returns the records of the tools. A tool of which only some calls mutate counts as mutating.
func embeddedRecords(all []tools.Tool) []embeddedTool {
	records := make([]embeddedTool, len(all))
	for i, tool := range all {
		records[i] = embeddedTool{tool.Spec.Name, tool.Spec.Description, tool.Spec.Parameters, tool.Mutates || tool.MutatesCall != nil}
	}
	return records
}

// KeepEmbedded checks current, the embedding program's tools, and saves their descriptions in the run directory. For
// a resumed run it returns an error if the tools differ from the saved ones.
func KeepEmbedded(rec *record.Record, j *job.Job, current []tools.Tool) error {
	var before []embeddedTool
	resumed, err := rec.ReadJSON(embeddedFile, &before)
	if err != nil {
		return err
	}
	if !resumed && len(current) == 0 {
		return nil
	}
	if err := checkEmbedded(current, j); err != nil {
		return err
	}
	records := embeddedRecords(current)
	if resumed && !sameEmbedded(before, records) {
		return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The program passes other tools than when the run began (%s); pass the same, or start a new run.", embeddedFile)
	}
	if resumed {
		return nil
	}
	return rec.WriteJSON(embeddedFile, records)
}

// sameEmbedded reports whether two lists of tools are equal. It ignores how the JSON of parameters is formatted.
func sameEmbedded(a, b []embeddedTool) bool {
	return slices.EqualFunc(a, b, func(a, b embeddedTool) bool {
		var parametersA, parametersB any
		if json.Unmarshal(a.Parameters, &parametersA) != nil || json.Unmarshal(b.Parameters, &parametersB) != nil {
			return false
		}
		a.Parameters, b.Parameters = nil, nil
		return reflect.DeepEqual(a, b) && reflect.DeepEqual(parametersA, parametersB)
	})
}

// embeddedName matches the function names that model APIs accept.
var embeddedName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// checkEmbedded returns an error about the first of the embedding program's tools that a model cannot be offered, or
// nil.
func checkEmbedded(all []tools.Tool, j *job.Job) error {
	for i, tool := range all {
		name := tool.Spec.Name
		problem := ""
		switch {
		case j.Model.WritesTextOnly(): // the model writes edits as text and calls no tools at all
			problem = "with model.tools: " + j.Model.Tools + " a model calls nothing; hand in no tools, or set another"
		case !embeddedName().MatchString(name):
			problem = "its name must be 1 to 64 letters, digits, - and _"
		case tools.OwnToolNamed(name) != "":
			problem = "agent-ci's own tool " + tools.OwnToolNamed(name) + " answers to its name"
		case strings.HasPrefix(strings.ToLower(name), "mcp__"):
			problem = "names that begin with mcp__ are of MCP servers"
		case slices.ContainsFunc(all[:i], func(t tools.Tool) bool { return t.Spec.Name == name }),
			slices.ContainsFunc(j.Tools.Dynamic, func(t job.DynamicTool) bool { return t.Name == name }):
			problem = "another tool has its name"
		case strings.TrimSpace(tool.Spec.Description) == "":
			problem = "it has no Description, by which a model knows what it does"
		case tool.Run == nil:
			problem = "it has no Run"
		case tool.Spec.Parameters == nil || tool.Spec.Grammar != "" || tool.Spec.Builtin != "":
			problem = "it must be a function, with Parameters and neither Grammar nor Builtin"
		default:
			problem = wrongParameters(tool.Spec.Parameters)
		}
		if problem != "" {
			return outcome.Stopf(outcome.InvalidInput, "bad_tool", "The tool %q of the program that embeds agent-ci can't be offered: %s.", name, problem)
		}
	}
	return nil
}

// wrongParameters returns what is wrong with the schema of a function's parameters, or "".
func wrongParameters(parameters json.RawMessage) string {
	if err := schema.Usable(parameters); err != nil {
		return "its Parameters are no JSON Schema: " + err.Error()
	}
	var parameterType struct{ Type any }
	if json.Unmarshal(parameters, &parameterType) != nil || parameterType.Type != "object" {
		return "its Parameters must be a JSON Schema with type: object"
	}
	return ""
}

// ReplayEmbedded returns the tools that the embedding program had in a recorded run. They answer calls from the
// record.
func ReplayEmbedded(dir *record.Directory, answers *Recorded) ([]tools.Tool, error) {
	var records []embeddedTool
	if _, err := dir.ReadJSON(embeddedFile, &records); err != nil {
		return nil, fmt.Errorf("read the tools of the run: %w", err)
	}
	all := make([]tools.Tool, len(records))
	for i, t := range records {
		all[i] = tools.Tool{Spec: tools.Spec{Name: t.Name, Description: t.Description, Parameters: t.Parameters}, Mutates: t.Mutates, Run: answers.Run}
	}
	return all, nil
}
