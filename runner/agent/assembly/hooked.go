package assembly

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// hookAnswers holds the answers that hooks give only once, before the first request.
type hookAnswers struct {
	descriptions map[string]string // descriptions of tools, by tool name
	env          map[string]string // environment variables of the agent's commands
}

// askHooksForDescriptions asks the hooks about the tools' definitions, and keeps the descriptions that they change.
func (a *Agent) askHooksForDescriptions(ctx context.Context) error {
	offered := a.conversation.Tools.Offered
	specs := a.conversation.Tools.Registry.Specs(slices.Concat(offered, a.deferred)) // the model may find the deferred ones later
	descriptions, err := a.Hooks.Descriptions(ctx, specs)
	for name, text := range descriptions {
		descriptions[name] = a.Record.Redact(text)
	}
	a.hookAnswers.descriptions = descriptions
	return err
}

// askHooksForEnv keeps the variables that the hooks set. It asks them once per run.
func (a *Agent) askHooksForEnv(ctx context.Context) (err error) {
	if a.hookAnswers.env == nil {
		a.hookAnswers.env, err = a.Hooks.Env(ctx, a.Job.CheckVariable)
	}
	return err
}

// specsToDefine returns the tools to define in requests, with the descriptions that hooks gave. It returns none for a
// model without tools. For a model that writes scripts, it leaves out the tools that scripts can call.
func (a *Agent) specsToDefine() []tools.Spec {
	if a.Job.Model.WritesTextOnly() {
		return nil
	}
	registry, offered := a.conversation.Tools.Registry, a.conversation.Tools.Offered
	if a.toolset.Code {
		offered = slices.DeleteFunc(slices.Clone(offered), func(name string) bool { return !registry.OnlyDirect(name) })
	}
	return a.withHookDescriptions(registry.Specs(offered))
}

// withHookDescriptions returns the specs with the descriptions that hooks gave.
func (a *Agent) withHookDescriptions(specs []tools.Spec) []tools.Spec {
	for i, spec := range specs {
		if text, changed := a.hookAnswers.descriptions[spec.Name]; changed {
			specs[i].Description = text
		}
	}
	return specs
}

// withHookEnv returns env with the variables set by hooks.
func (a *Agent) withHookEnv(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, isSet := a.hookAnswers.env[name]
		return isSet
	})
	for _, name := range slices.Sorted(maps.Keys(a.hookAnswers.env)) {
		env = append(env, name+"="+a.hookAnswers.env[name])
	}
	return env
}

// converseUntilAllowed runs the conversation until the agent ends and its hooks allow that. It returns the agent's last
// message.
func (a *Agent) converseUntilAllowed(ctx context.Context) (lastWords string, err error) {
	for {
		lastWords, err := a.conversation.Run(ctx)
		if stop, _ := splitStop(ctx, err); stop != nil {
			_, _ = a.settleTeam(ctx, false) // let subagents finish; the budget's error takes precedence
			return lastWords, err
		}
		if err != nil {
			return lastWords, err
		}
		news, err := a.settleTeam(ctx, a.hasTurnLeft())
		if err != nil {
			return lastWords, err
		}
		if news {
			continue
		}
		more, err := a.askStop(ctx, lastWords)
		if err != nil {
			return lastWords, err
		}
		if more == "" {
			return lastWords, nil
		}
		if err := a.Tell(more); err != nil {
			return lastWords, err
		}
	}
}

// askStop asks the stop hooks whether the agent may end with this last message. It returns their demand for more work,
// or "".
func (a *Agent) askStop(ctx context.Context, lastWords string) (more string, err error) {
	if a.Subagent != nil { // its hooks cannot demand more
		return "", a.Hooks.SubagentStop(ctx, a.Subagent.Description, a.Record.Redact(lastWords))
	}
	return a.Hooks.Stop(ctx, a.Record.Redact(lastWords), a.hasTurnLeft())
}

// settleEnd reports whether the agent of a resumed run has ended, and returns its last message. It asks the stop hooks
// if they were not asked before. If they demand more work, it tells the agent so and ended is false. A run that is not
// resumed has not ended.
func (a *Agent) settleEnd(ctx context.Context) (lastWords string, ended bool, err error) {
	if a.resumeFrom == nil {
		return "", false, nil
	}
	lastWords, ended = a.resumeFrom.State.Ended()
	if !ended {
		return "", false, nil
	}
	asked, more := a.Hooks.PendingStop() // the hooks have not accepted the end, because hadEnded returned false
	if !asked {
		if more, err = a.askStop(ctx, lastWords); err != nil {
			return lastWords, true, err
		}
	}
	if more == "" { // the hooks accept the end
		return lastWords, true, nil
	}
	return "", false, a.Tell(more)
}
