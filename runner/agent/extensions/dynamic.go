package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dynamic"
	"github.com/agent-ci/agent-ci/tools/schema"
	"github.com/agent-ci/agent-ci/tools/search"
)

// Dynamic holds the tools that the job defines itself (tools.dynamic), for a whole run.
type Dynamic struct {
	sandboxes *confine.Sandboxes
	dir       string // working directory of the agent's commands
	tools     []job.DynamicTool
	specs     []tools.Spec      // one for each of tools
	programs  []dynamic.Program // one for each of tools; without a sandbox before Open
}

// NewDynamic returns the job's tools, and starts nothing. It returns an error for a tool whose input_schema cannot be
// sent to a model, or cannot be used to check arguments.
func NewDynamic(boxes *confine.Sandboxes, j *job.Job, dir string) (*Dynamic, error) {
	d := &Dynamic{sandboxes: boxes, dir: dir, tools: j.Tools.Dynamic, programs: make([]dynamic.Program, len(j.Tools.Dynamic))}
	for _, tool := range d.tools {
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("encode the input_schema of %s: %w", tool.Name, err)
		}
		fit, err := schema.Fit(raw)
		if err != nil {
			return nil, outcome.Stopf(outcome.InvalidInput, "bad_tool", "agent-ci can't send the model the input_schema of the tool %s: %v; make it simpler.", tool.Name, err).Because(err)
		}
		accepts, unchecked := schema.Checkable(raw)
		if unchecked != "" {
			return nil, outcome.Stopf(outcome.InvalidInput, "bad_tool", "The arguments of the tool %s can't be checked by its input_schema: %s; rewrite that part.", tool.Name, unchecked)
		}
		d.specs = append(d.specs, tools.Spec{Name: tool.Name, Description: tool.Description, Parameters: fit, Accepts: accepts})
	}
	return d, nil
}

// Tools returns the tools. Those that it returns before Open cannot be called.
func (d *Dynamic) Tools(outputs *tools.Outputs) []search.Candidate {
	all := make([]search.Candidate, len(d.tools))
	for i, tool := range d.tools {
		all[i] = search.Candidate{Tool: dynamic.NewTool(d.specs[i], d.programs[i], time.Duration(tool.Timeout), outputs), Source: "this job", Defer: tool.Defer}
	}
	return all
}

// Prepare makes the base commit's tree readable for the agent's commands, because it contains the tools' programs.
// It returns the tree's folder, or "" if there are no tools. Call it before making the agent's sandbox.
func (d *Dynamic) Prepare(ctx context.Context) (base string, err error) {
	if len(d.tools) == 0 {
		return "", nil
	}
	return d.sandboxes.ShowBase(ctx)
}

// Open finds the program of each tool, so that one attempt of the agent can call them. base is the result of Prepare, env
// the environment of the agent's commands. If a program is missing, the error is an outcome.Stop.
func (d *Dynamic) Open(box *sandbox.Sandbox, base string, env []string) error {
	env = append(slices.Clone(env), confine.BaseTreeVariable+"="+base)
	for i, tool := range d.tools {
		argv, err := d.argv(tool, base)
		if err != nil {
			return err
		}
		d.programs[i] = dynamic.Program{Sandbox: box, Argv: argv, Dir: d.dir, Env: env}
	}
	return nil
}

// toolStart is the stop reason for a missing tool program.
const toolStart = "tool_start"

// argv returns a tool's program and arguments. Scripts run in bash. A relative program path is looked up in the
// folder base, the base commit's tree, because the agent can change the files of the checkout.
func (d *Dynamic) argv(tool job.DynamicTool, base string) ([]string, error) {
	if tool.Run.Script != "" {
		return []string{"bash", "-e", "-c", tool.Run.Script}, nil
	}
	argv, home := make([]string, len(tool.Run.Argv)), d.sandboxes.Environ.Home()
	for i, word := range tool.Run.Argv {
		argv[i] = strings.ReplaceAll(job.ExpandHome(word, home), "${"+confine.BaseTreeVariable+"}", base)
	}
	if !strings.Contains(argv[0], "/") {
		return argv, nil
	}
	program, problem := findProgram(argv[0], base, d.sandboxes.InWorkspace)
	if problem != "" {
		return nil, outcome.Stopf(outcome.ExtensionFailed, toolStart, "The tool %s of the job (tools.dynamic) can't be started: %s.", tool.Name, problem)
	}
	argv[0] = program
	return argv, nil
}
