package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dynamic"
)

// Dynamic are the tools of the job's own, for a whole run.
type Dynamic struct {
	record   *record.Record
	boxes    *confine.Sandboxes
	dir      string    // that the agent's commands work in
	recorded *Recorded // answers for tools that reach out in a run which is replayed; nil where they are called
	tools    []job.DynamicTool
	specs    []tools.Spec // of each

	mu     sync.Mutex
	ends   map[string]int // of processes that serve, by the name of their first tool
	halted error
}

// NewDynamic makes them. Nothing is started. The error is of a schema that no model can be
// told.
func NewDynamic(r *record.Record, boxes *confine.Sandboxes, j *job.Job, dir string, recorded *Recorded) (*Dynamic, error) {
	d := &Dynamic{record: r, boxes: boxes, dir: dir, recorded: recorded, tools: j.Tools.Dynamic, ends: map[string]int{}}
	for _, tool := range d.tools {
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("encode the input_schema of %s: %w", tool.Name, err)
		}
		fit, err := tools.FitSchema(raw)
		if err != nil {
			return nil, outcome.Stopf(outcome.InvalidInput, "bad_tool", "The model can't be told the input_schema of the tool %s: %v; make it simpler.", tool.Name, err).Because(err)
		}
		accepts, unchecked := tools.CheckableSchema(raw)
		if unchecked != "" {
			return nil, outcome.Stopf(outcome.InvalidInput, "bad_tool", "The arguments of the tool %s can't be checked by its input_schema: %s; write that part otherwise.", tool.Name, unchecked)
		}
		d.specs = append(d.specs, tools.Spec{Name: tool.Name, Description: tool.Description, Parameters: fit, Accepts: accepts})
	}
	return d, nil
}

// jobsOwn is who offers the tools of the job's own.
const jobsOwn = "this job"

// Told are the tools as a model is told of them, before anything is opened: none can be
// called.
func (d *Dynamic) Told() []Tool {
	return d.each(func(_ int, spec tools.Spec) tools.Tool { return tools.Tool{Spec: spec, Mutates: true} })
}

func (d *Dynamic) each(made func(i int, spec tools.Spec) tools.Tool) []Tool {
	all := make([]Tool, len(d.tools))
	for i, tool := range d.tools {
		all[i] = Tool{Tool: made(i, d.specs[i]), From: jobsOwn, Defer: tool.Defer}
		all[i].Foreign = true
	}
	return all
}

// Halt says why the run can't go on without a process that ended; nil while it can.
func (d *Dynamic) Halt() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.halted
}

// Answering are the tools in one attempt of the agent, with the processes that answer them.
type Answering struct {
	*Dynamic
	agents  *sandbox.Sandbox
	beside  []*sandbox.Sandbox // one for each network that is not the agent's
	others  []job.Network      // these
	base    string             // the tree of the base commit
	env     []string           // of programs in the agent's sandbox
	argv    [][]string         // of each tool
	servers map[string]*served
	ready   time.Time // until when servers are waited for
}

// served is a process that serves, with the file of what it writes beside its answers.
type served struct {
	*dynamic.Server
	log *sharedLog
}

// Prepare has the agent's commands see the tree of the base commit, from which the programs
// of tools come. It is called before the agent's sandbox is made.
func (d *Dynamic) Prepare(ctx context.Context) (base string, err error) {
	if len(d.tools) == 0 {
		return "", nil
	}
	return d.boxes.ShowBase(ctx)
}

// Open starts the processes that serve, in the agent's sandbox or beside it. base is what
// Prepare gave, env what the agent's commands have as their environment. The error is a Stop where a tool can't be had.
func (d *Dynamic) Open(ctx context.Context, box *sandbox.Sandbox, base string, env []string) (_ *Answering, err error) {
	a := &Answering{Dynamic: d, agents: box, others: d.boxes.Job.OtherNetworks(), base: base, servers: map[string]*served{}}
	if len(d.tools) == 0 {
		return a, nil
	}
	a.env = append(slices.Clone(env), confine.BaseTreeVariable+"="+base)
	for _, tool := range d.tools {
		argv, err := d.argv(tool, base)
		if err != nil {
			return nil, err
		}
		a.argv = append(a.argv, argv)
	}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Answering) open(ctx context.Context) error {
	if len(a.others) > 0 && a.base == "" {
		return outcome.Stopf(outcome.ExtensionFailed, toolStart, "Tools with a network of their own (tools.dynamic[].network) are started in the tree of the base commit, and there is none; commit something, or leave network out.")
	}
	if a.recorded != nil { // else what they did outside would be done again
		a.others = slices.DeleteFunc(a.others, func(n job.Network) bool { return n.Mode != "none" })
	}
	for i, network := range a.others {
		box, err := a.boxes.OpenBeside(ctx, a.agents, confine.Beside{
			Name: fmt.Sprintf("tools-%d", i+1), Network: network, Key: "tools.dynamic[].network", Workspace: confine.BesideWrite, BaseTree: true,
		})
		if err != nil {
			return err
		}
		a.beside = append(a.beside, box)
	}
	return a.serve()
}

// replays says whether a tool is answered by the record: what it did outside is not done again.
func (d *Dynamic) replays(tool job.DynamicTool) bool {
	return d.recorded != nil && d.boxes.Job.Outward(tool)
}

// workspaceVariable names the variable by which tools that are started in the tree of the base
// find the folder that the agent works in.
const workspaceVariable = "AGENT_CI_WORKSPACE"

// program is what answers the calls of a tool. One that may reach more than the agent is started
// where nothing that the agent wrote is taken for a part of it: neither what its arguments name,
// nor an interpreter, nor what that loads.
func (a *Answering) program(i int) dynamic.Program {
	p := dynamic.Program{Sandbox: a.agents, Argv: a.argv[i], Dir: a.dir, Env: a.env}
	network := a.Dynamic.tools[i].Network
	at := slices.IndexFunc(a.others, func(n job.Network) bool { return reflect.DeepEqual(n, network) })
	if at >= 0 {
		p.Sandbox, p.Dir = a.beside[at], a.base
		p.Env = append(a.boxes.BesideEnv(nil, nil), confine.BaseTreeVariable+"="+a.base, workspaceVariable+"="+a.dir)
	}
	return p
}

// firstOf names the process that serves a tool: by the first tool that it serves.
func (d *Dynamic) firstOf(tool job.DynamicTool) string {
	at := slices.IndexFunc(d.tools, func(other job.DynamicTool) bool { return reflect.DeepEqual(other.Serve, tool.Serve) })
	return d.tools[at].Name
}

// startMoment is how long a process that serves, and does not say when it is ready, has to be
// there at the start: one whose program is missing, or lacks a library, ends by then.
const startMoment = time.Second

// serve starts the processes that serve. Ready says whether they stay.
func (a *Answering) serve() error {
	for i, tool := range a.Dynamic.tools {
		name := a.firstOf(tool)
		if tool.Serve.IsZero() || a.servers[name] != nil || a.replays(tool) {
			continue
		}
		log, err := newLog(a.record, name)
		if err != nil {
			return err
		}
		ended := func(why string) error { return a.ended(name, why, log.name) }
		s := &served{&dynamic.Server{Program: a.program(i), Log: log, Ended: ended}, log}
		a.servers[name] = s
		if err := s.Start(); err != nil {
			return s.notStarted(name, err)
		}
	}
	a.ready = time.Now().Add(startMoment)
	return nil
}

// Ready waits until the processes that serve are ready, or have been there for a moment since
// their start. It is called before the model is asked anything; what is done between Open and
// Ready takes nothing from the time of a run.
func (a *Answering) Ready(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(a.servers)) {
		s := a.servers[name]
		if err := s.Server.Ready(ctx, a.ready); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return s.notStarted(name, err)
		}
	}
	return nil
}

func (s *served) notStarted(name string, err error) error {
	return notStarted(name, fmt.Sprintf("%s; see %s", outcome.Trimmed(err), s.log.name)).Because(err)
}

// toolStart is the reason of an end by a tool that can't be had.
const toolStart = "tool_start"

func notStarted(name, why string) *outcome.Stop {
	return outcome.Stopf(outcome.ExtensionFailed, toolStart, "The tool %s of the job (tools.dynamic) can't be started: %s.", name, why)
}

// ended takes note of a process that ended by itself: it is started anew once in a run.
func (d *Dynamic) ended(name, why, log string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ends[name]++; d.ends[name] == 1 {
		d.record.Warn("tool_ended", "The process that serves the tool %s %s. It is started anew, which is done once.", name, why)
		return nil
	}
	stop := outcome.Stopf(outcome.ExtensionFailed, toolStart,
		"The process that serves the tool %s of the job (tools.dynamic) ended for the second time: it %s; see %s.", name, why, log)
	if d.halted == nil {
		d.halted = stop
	}
	return errors.New("its process ended for the second time")
}

// Tools are the tools that can be called.
func (a *Answering) Tools(outputs *tools.Outputs) []Tool {
	return a.each(func(i int, spec tools.Spec) tools.Tool {
		tool := a.Dynamic.tools[i]
		if a.replays(tool) {
			return tools.Tool{Spec: spec, Mutates: true, Run: a.recorded.Run}
		}
		timeout := time.Duration(tool.Timeout)
		if tool.Serve.IsZero() {
			return dynamic.Run(spec, a.program(i), timeout, outputs)
		}
		return a.servers[a.firstOf(tool)].Tool(spec, timeout)
	})
}

// Close ends the processes, and what they left running beside the agent's sandbox.
func (a *Answering) Close() (err error) {
	if a == nil {
		return nil
	}
	for _, s := range a.servers {
		s.Server.Close()
		err = errors.Join(err, s.log.close())
	}
	for _, box := range a.beside {
		err = errors.Join(err, box.Close())
	}
	return err
}

// command is what a tool is answered by.
func command(t job.DynamicTool) job.Command {
	if t.Serve.IsZero() {
		return t.Run
	}
	return t.Serve
}

// argv is the program of a tool with its arguments. A script is for the shell. A path below
// the repository is taken of the base commit, since the agent can change the files that it
// works on.
func (d *Dynamic) argv(tool job.DynamicTool, base string) ([]string, error) {
	c := command(tool)
	if c.Script != "" {
		return []string{"bash", "-e", "-c", c.Script}, d.outside(tool, "bash")
	}
	argv, home := make([]string, len(c.Argv)), d.boxes.Environ.Get("HOME")
	for i, word := range c.Argv {
		argv[i] = strings.ReplaceAll(job.AtHome(word, home), "${"+confine.BaseTreeVariable+"}", base)
	}
	if !strings.Contains(argv[0], "/") {
		return argv, d.outside(tool, argv[0])
	}
	program, why := findProgram(argv[0], base, d.boxes.InWorkspace)
	if why != "" {
		return nil, notStarted(tool.Name, why)
	}
	argv[0] = program
	return argv, nil
}

// outside says that PATH leads to no program for a tool with a network of its own, but to one that
// the agent can change.
func (d *Dynamic) outside(tool job.DynamicTool, program string) error {
	own := slices.ContainsFunc(d.boxes.Job.OtherNetworks(), func(n job.Network) bool { return reflect.DeepEqual(n, tool.Network) })
	if !own {
		return nil
	}
	if found := d.boxes.Linked(program, d.boxes.BesideEnv(nil, nil)); found != "" {
		return notStarted(tool.Name, found+" leads to the checkout or to a folder of policy.writable, where the agent could change it; name it by its path in the repository (./…), which is taken of the base commit, or put it elsewhere")
	}
	return nil
}
