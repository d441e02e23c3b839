package worker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/tools"
)

// hooked holds hook answers given once, before the first request.
type hooked struct {
	descriptions map[string]string // of tools, by their names
	env          map[string]string // of the agent's commands
}

// askEnv has hooks settle variables of the agent's commands, once in a run.
func (a *Agent) askEnv(ctx context.Context) (err error) {
	if a.hooked.env != nil || a.Hooks == nil {
		return nil
	}
	a.hooked.env, err = a.Hooks.Env(ctx, a.whyNoVariable)
	return err
}

// askDefinitions lets hooks change tool descriptions before they are fixed.
func (a *Agent) askDefinitions(ctx context.Context) error {
	if a.Hooks == nil {
		return nil
	}
	offered := a.conversation.Tools.Offered
	before := a.conversation.Tools.Registry.Specs(slices.Concat(offered, a.deferred)) // the model finds those later
	after, err := a.Hooks.Definitions(ctx, before)
	if err != nil {
		return err
	}
	a.hooked.descriptions = map[string]string{}
	for i, spec := range after {
		if spec.Description != before[i].Description {
			a.hooked.descriptions[spec.Name] = a.Record.Redact(spec.Description)
		}
	}
	return nil
}

// halted says why the run can't go on: by its tools from outside, or by a hook.
func (a *Agent) halted() error {
	return cmp.Or(a.servers.Halt(), a.Hooks.Halt())
}

// specs returns the offered tools with descriptions changed by hooks.
func (a *Agent) specs() []tools.Spec {
	if a.Job.Model.Writes() {
		return nil
	}
	registry, offered := a.conversation.Tools.Registry, a.conversation.Tools.Offered
	if a.suits.Code {
		offered = slices.DeleteFunc(slices.Clone(offered), func(name string) bool { return !registry.Direct(name) })
	}
	return a.described(registry.Specs(offered))
}

// described are tools as hooks describe them.
func (a *Agent) described(specs []tools.Spec) []tools.Spec {
	for i, spec := range specs {
		if words, changed := a.hooked.descriptions[spec.Name]; changed {
			specs[i].Description = words
		}
	}
	return specs
}

// whyNoVariable says why a hook may not set a variable of commands; empty: it may.
func (a *Agent) whyNoVariable(name, value string) string {
	if err := a.Job.MayBeVariable(name, value); err != nil {
		return err.Error()
	}
	return ""
}

// hookedEnv returns env with the variables set by hooks.
func (a *Agent) hookedEnv(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, set := a.hooked.env[name]
		return set
	})
	for _, name := range slices.Sorted(maps.Keys(a.hooked.env)) {
		env = append(env, name+"="+a.hooked.env[name])
	}
	return env
}

// patchAsked returns a function running patch hooks; nil without such hooks.
func (a *Agent) patchAsked() func(ctx context.Context, edits []tree.Edit, diff string) (refusal, aside string) {
	if !a.Hooks.OfPatches() {
		return nil
	}
	return func(ctx context.Context, edits []tree.Edit, diff string) (refusal, aside string) {
		return a.Hooks.Patching(ctx, hooks.Patch{Edits: edits, Diff: diff})
	}
}

// converseUntilLet has the agent go on until it ends and the hooks let it.
func (a *Agent) converseUntilLet(ctx context.Context) (string, error) {
	for {
		words, err := a.conversation.Run(ctx)
		if stop, failed := stoppedBy(ctx, err); stop != nil && failed == nil {
			_, _ = a.settleTeam(ctx, false) // those that it started may end by themselves
			return words, err
		}
		if err != nil {
			return words, err
		}
		news, err := a.settleTeam(ctx, a.mayGoOn())
		if err != nil {
			return words, err
		}
		if news {
			continue
		}
		more, err := a.askStop(ctx, words)
		if err != nil || more == "" {
			return words, err
		}
		if err := a.Tell(more); err != nil {
			return words, err
		}
	}
}

// askStop runs the stop hooks of an ended agent. Non-empty text is further work for it.
func (a *Agent) askStop(ctx context.Context, words string) (string, error) {
	if a.Child != nil {
		return "", a.Hooks.SubagentStop(ctx, a.Child.Told, a.Record.Redact(words))
	}
	return a.Hooks.Stop(ctx, a.Record.Redact(words), a.mayGoOn())
}

// acceptedEnd holds the last words of an agent stopped after its end; hooks have accepted the end.
type acceptedEnd struct {
	ended bool
	words string
}

// settleEnd runs stop hooks missed because the run was stopped, and sends the agent their pending
// requests.
func (a *Agent) settleEnd(ctx context.Context) (d acceptedEnd, err error) {
	if a.earlier == nil {
		return d, nil
	}
	words, ended := a.earlier.Past.Ended()
	asked, more := a.Hooks.Stopped()
	if !ended || asked && more == "" {
		return d, nil
	}
	if !asked {
		if more, err = a.askStop(ctx, words); err != nil {
			return d, err
		}
	}
	if more == "" {
		return acceptedEnd{true, words}, nil
	}
	return d, a.Tell(more)
}
