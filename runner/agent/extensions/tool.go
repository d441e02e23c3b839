package extensions

import "github.com/agent-ci/agent-ci/tools"

// Tool is a tool from outside, for the model.
type Tool struct {
	tools.Tool
	Source string // who offers it, in a word or two
	Defer  bool   // the model has to look for it in any case
}
