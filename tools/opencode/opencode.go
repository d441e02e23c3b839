// Package opencode holds tools with OpenCode's names, arguments and output, for models that know OpenCode: edit, write, read,
// glob, grep, list, todowrite and todoread. It remembers which files a model has seen, and finds the text of an edit in a
// file. It uses tools/files to read and search, and tools/patch to change files. OpenCode's bash is in tools/command, its
// task in tools/agents.
package opencode

import (
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
)

// Options configures the tools.
type Options struct {
	Files files.Options
	// KnownFiles holds the files read so far. The tools add to it.
	KnownFiles *KnownFiles
	// AcceptsImages reports that the model accepts images.
	AcceptsImages bool
	// Patcher changes files. Nil leaves out the tools edit and write.
	Patcher *patch.Patcher
	// SetPlan receives each plan, and Plan returns the latest. Nil leaves out the tools for todos.
	SetPlan func(plan.Plan) error
	Plan    func() plan.Plan
}

// New returns the tools.
func New(o Options) []tools.Tool {
	inner := map[string]tools.Tool{}
	for _, tool := range files.New(o.Files) {
		inner[tool.Spec.Name] = tool
	}
	var view *tools.Tool
	if o.AcceptsImages {
		view = new(inner[dialect.ViewImage])
	}
	all := []tools.Tool{readTool(o.Files, o.KnownFiles, view)}
	all = append(all, globTool(inner[dialect.GrepFiles]), grepTool(o.Files), listTool(inner[dialect.ListDir]), inner[dialect.ViewImage])
	if o.Patcher != nil {
		e := editor{o.Patcher, o.Files.Dir, o.KnownFiles}
		all = append(all, editTool(e), writeTool(e))
	}
	if o.SetPlan != nil {
		all = append(all, todoWrite(plan.New(o.SetPlan)), todoRead(o.Plan))
	}
	return all
}
