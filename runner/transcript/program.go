package transcript

import (
	"encoding/json"
	"regexp"
	"slices"
)

// scriptTools are the tools whose calls are scripts that call others, with the JavaScript as input.
var scriptTools = []string{"exec", "js_repl"}

// IsScript says whether the input of a tool's calls is JavaScript that may call other tools.
func IsScript(tool string) bool { return slices.Contains(scriptTools, tool) }

// The types of the items of a program, which the API runs.
const (
	programItemType   = "program"
	programOutputType = "program_output"
)

// Program is an item of a program, or of its end. Type is empty for any other item.
type Program struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Code   string `json:"code"`
	Result string `json:"result"`
	Status string `json:"status"`
}

// ProgramItem reads an item that came from the API.
func ProgramItem(raw json.RawMessage) Program {
	var item Program
	if json.Unmarshal(raw, &item) != nil || item.Type != programItemType && item.Type != programOutputType {
		return Program{}
	}
	return item
}

// Ends says that the item is the end of a program.
func (p Program) Ends() bool { return p.Type == programOutputType }

// pragma is the first line of a script where it says how to run it.
var pragma = regexp.MustCompile(`^//[ \t]*[@\w.-]+:[^\n]*\n`)
