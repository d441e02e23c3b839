package assembly

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/services"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/question"
	"github.com/agent-ci/agent-ci/tools/repl"
	"github.com/agent-ci/agent-ci/tools/skill"
)

// patchTool applies patches. questionTool asks a person.
const (
	patchTool    = dialect.ApplyPatch
	questionTool = dialect.RequestUserInput
)

// toolset is a provider.Toolset with methods for offering its tools.
type toolset struct{ provider.Toolset }

func toolsetOf(p catalog.Profile, form string) toolset { return toolset{provider.ToolsetOf(p, form)} }

// actionPhrases describes the usual actions with these tools.
func (s toolset) actionPhrases() briefing.ActionPhrases {
	if f, writesText := editFormats[s.Family]; writesText {
		return writingPhrases(f)
	}
	if f, known := families[s.Family]; known {
		return f.phrases
	}
	return briefing.ToolCallPhrases()
}

// offeredNames returns the names of the built-in tools to offer. canAsk means that people can answer questions. named are
// the tools that the job allows by name.
func (s toolset) offeredNames(canAsk bool, named []string) []string {
	if _, writesText := editFormats[s.Family]; writesText {
		return []string{dialect.UpdatePlan, dialect.ReadFile, provider.WrittenCommands, patchTool}
	}
	commandTools := append(slices.Clone(s.CommandTools), patchTool)
	if s.usesFamily() {
		commandTools = dialect.NamesInFamily(s.Family, dialect.Commands)
	}
	all := dialect.NamesInFamily(s.Family, dialect.Plans, dialect.Looks, dialect.Edits)
	if s.ReadsImages {
		all = append(all, dialect.ViewImage)
	}
	all = append(all, commandTools...)
	if canAsk {
		all = append(all, questionTool)
	}
	return append(all, named...)
}

// toolDefinitions returns the definitions of local tools, followed by those of hosted tools, which the API runs itself.
func toolDefinitions(local []tools.Spec, hosted []map[string]any) ([]json.RawMessage, error) {
	definitions, err := callitem.Definitions(local)
	if err != nil {
		return nil, err
	}
	for _, tool := range hosted {
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, fmt.Errorf("encode tools.hosted: %w", err)
		}
		definitions = append(definitions, raw)
	}
	return definitions, nil
}

// toolbox holds an agent's sandbox and processes for one attempt. If only its view is set, tools can be described but
// not called.
type toolbox struct {
	sandbox  *sandbox.Sandbox
	view     *treeView
	commands *command.Tools
	repl     *repl.Repl  // nil if the job does not enable it
	scripts  *code.Tools // nil if the model writes no scripts
	services services.Running
	borrowed bool // view and sandbox belong to the starter
}

// makeTools sets the toolbox for a new attempt: it prepares the sandbox, starts the services and MCP servers, and gives
// the conversation its tools.
func (a *Agent) makeTools(ctx context.Context) error {
	if a.Subagent != nil {
		return a.makeSubagentTools(ctx)
	}
	base, err := a.dynamic.Prepare(ctx)
	if err != nil {
		return err
	}
	box := sandbox.OpenOnFirstUse(ctx, a.Sandboxes.Options(confine.AgentPlace()))
	view := a.newTreeView(box)
	a.Hooks.SetAgentSandbox(box)
	err = a.requireWorkDir(view)
	if err == nil {
		err = a.askHooksForEnv(ctx)
	}
	if err != nil {
		a.Hooks.SetAgentSandbox(nil)
		view.close()
		return errors.Join(err, box.Close())
	}
	a.toolbox = &toolbox{sandbox: box, view: view}
	if err := a.startServices(ctx, box); err != nil {
		return err
	}
	if err := a.dynamic.Open(box, base, a.withHookEnv(a.Sandboxes.AgentEnv(a.Place()))); err != nil {
		return err
	}
	if err := a.findNode(ctx, box); err != nil {
		return err
	}
	if err := a.useTools(ctx, a.toolbox); err != nil {
		return err
	}
	if err := a.startServers(ctx, box); err != nil {
		return err
	}
	if err := a.fixDefinitions(ctx); err != nil {
		return err
	}
	if a.conversation.Tools.Registry.Denial(patchTool) == "" && !a.Hooks.HasPatchHooks() {
		a.Sandboxes.LinkProgram(v4a.Program)
	}
	if a.toolset.Code {
		a.toolbox.scripts.Warm()
	}
	return nil
}

// startServices starts the job's services. If a service does not become ready after the agent has changed files, it
// only warns: the agent may have broken the service, and the checks will show that.
func (a *Agent) startServices(ctx context.Context, box *sandbox.Sandbox) (err error) {
	isFirstStart := a.serviceAttempts == 0 && a.resumeFrom == nil
	mayHaveChanges := !a.Workspace.Untouched() && !isFirstStart
	a.toolbox.services, err = a.Sandboxes.Serve(ctx, box, confine.AgentPlace(), a.workDir())
	mayBeAgentsFault := mayHaveChanges && services.IsNotReady(err) && ctx.Err() == nil
	if mayBeAgentsFault {
		a.Record.Warn("service_not_ready", "The agent continues without its services. %s", outcome.ForError(ctx, err).Message)
		return nil
	}
	a.serviceAttempts++
	return err
}

// useTools gives the conversation the agent's tools: the built-in ones, the external ones, and those for its team. A
// subagent gets only the tools that its role permits.
func (a *Agent) useTools(ctx context.Context, box *toolbox) error {
	outputs := a.outputs()
	external, err := a.externalTools(outputs)
	if err != nil {
		return err
	}
	a.deferred = external.deferred
	all := append(a.allTools(ctx, box, outputs), external.tools()...)
	ownTools := slices.Concat(a.toolset.offeredNames(a.Ask != nil, a.Job.Tools.Allow), a.offeredMemory(), a.javaScript.offeredNames())
	if len(a.Skills.Skills) > 0 {
		ownTools = append(ownTools, skill.Name)
	}
	offered := external.offeredNames(ownTools)
	if a.Team != nil {
		for _, tool := range a.Team.Tools() {
			all, offered = append(all, tool), append(offered, tool.Spec.Name)
		}
	}
	if a.Subagent != nil {
		all = slices.DeleteFunc(all, func(t tools.Tool) bool { return !a.subagentMayUse(t.Spec.Name) })
		offered = slices.DeleteFunc(offered, func(name string) bool { return !a.subagentMayUse(name) })
	}
	var registry *tools.Registry
	if a.toolset.Code {
		offered = slices.Concat(scriptTools, offered, external.deferred)
		registry, err = a.scriptRegistry(ctx, box, outputs, all, offered, external)
	} else {
		registry, err = a.newRegistry(all, external)
	}
	if err != nil {
		return err
	}
	dispatcher := &tools.Dispatcher{Registry: registry, Outputs: outputs, Observer: a.conversation, Offered: offered, CountScriptCall: a.conversation.CountScriptCall}
	if a.Hooks != nil {
		dispatcher.Gate = a.Hooks
	}
	if a.Job.Policy.Network.HasList() {
		dispatcher.TextBefore = a.Sandboxes.TakeRefusals
	}
	a.conversation.Tools = dispatcher
	return nil
}

// newRegistry returns a registry of the tools in all that the job allows.
func (a *Agent) newRegistry(all []tools.Tool, external externalTools) (*tools.Registry, error) {
	registry := tools.New(all...)
	if err := registry.Restrict(a.allowedNames(external), a.toolset.deniedNames(a.withoutUnknown(a.Job.Tools.Deny))); err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "unknown_tool", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return registry, nil
}

// allTools returns the built-in tools of the agent, in the order in which the model sees them. It sets box.commands and
// box.repl.
func (a *Agent) allTools(ctx context.Context, box *toolbox, outputs *tools.Outputs) []tools.Tool {
	dir, checkout := box.view.workDir, box.view.checkout(ctx, a.Workspace.Checkout())
	patcher := a.newPatcher(box.view, checkout)
	fileOptions := files.Options{Dir: dir, Outputs: a.Record.Join(record.OutputsFolder), Checkout: checkout, View: box.view.view, Since: a.createdAt}
	f, isFamily := families[a.toolset.Family]
	if !a.mayWrite() {
		newTools := files.New
		if isFamily {
			newTools = func(o files.Options) []tools.Tool { return f.readingTools(a, o) }
		}
		return slices.Concat(newTools(fileOptions), []tools.Tool{a.skillTool()}, a.memoryTools(box))
	}
	box.commands = command.New(command.Options{
		Sandbox: box.sandbox, Outputs: outputs, Dir: dir, Env: a.withHookEnv(a.Sandboxes.AgentEnv(a.Place())), Programs: a.Record.Join(confine.ProgramsFolder),
		Shell: a.toolset.Shell, Patch: a.patchInCommand(patcher), Judge: a.Sandboxes.Judge(), RecordedReturn: a.ReplayCommand,
	})
	var ask func(context.Context, []question.Question) error // nil if nobody answers
	if a.Ask != nil {
		ask = a.askPeople
	}
	var all []tools.Tool
	if isFamily {
		all = f.writingTools(a, box, fileOptions, patcher)
	} else {
		all = append([]tools.Tool{plan.New(a.recordPlan)}, files.New(fileOptions)...)
		all = append(append(all, box.commands.All()...), patcher.Tool())
	}
	all = append(all, question.New(ask), a.skillTool())
	return a.withShownFiles(slices.Concat(all, a.memoryTools(box), a.replTools(box, outputs)))
}

// newPatcher returns the patcher that applies the agent's patches to its tree.
func (a *Agent) newPatcher(view *treeView, checkout files.Checkout) *patch.Patcher {
	options := patch.Options{
		Dir: view.workDir, Offer: a.toolset.Patch, View: view.view, Protect: a.protectedRefusal,
		Ignored: func(name string) bool {
			ignored, err := checkout.Ignores(view.workDir.Path, name)
			return err == nil && ignored
		},
	}
	if a.Hooks.HasPatchHooks() {
		options.Ask = a.Hooks.ReviewPatch
	}
	if a.usesMainTree() { // patches of a copy need not be saved, since the copy does not outlive the run
		options.Keep, options.KeepDiff = a.changeSaver(patchChange), a.changeSaver(diffChange)
	}
	if f, writesText := editFormats[a.toolset.Family]; writesText {
		options.Written = &patch.Written{Format: f, Known: a.shownFiles.paths}
	}
	return patch.New(options)
}

// close stops the agent's commands and kernel. Unless they are borrowed, it also stops the services and closes
// the sandbox, by closeSandbox, and the view.
func (t *toolbox) close(closeSandbox func(*sandbox.Sandbox) error) error {
	if t.commands != nil {
		t.commands.Close()
	}
	if t.repl != nil {
		t.repl.Close()
	}
	if t.borrowed {
		return nil
	}
	err := errors.Join(t.services.Close(), closeSandbox(t.sandbox))
	t.view.close()
	return err
}

// modelOptions combines a model's profile with the job's settings for the conversation.
func (a *Agent) modelOptions(m provider.ProfiledModel) agent.ModelOptions {
	jobModel := a.Job.Model
	options := agent.ModelOptions{
		Model: cmp.Or(m.Name, jobModel.Name), Effort: jobModel.ReasoningEffort, Summary: jobModel.Summary,
		Window: m.Profile.ContextWindow, Price: m.Profile.Price,
	}
	if !m.Profile.Reasoning {
		options.Effort, options.Summary = "", ""
	}
	return options
}
