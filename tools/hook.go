package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// Hook has a say in each call that fits its tool. Calls that the dispatcher
// refuses by itself never come to it. It is called from several goroutines.
type Hook interface {
	// Before is asked before the tool runs; call is as Run gets it. What it
	// returns is why the call is not run, in words for the model. After an error
	// the call is not run either.
	Before(ctx context.Context, tool string, call Call) (refusal string, err error)
	// After is told of a call that was run, with the result that the model would
	// get. The model gets the words that it returns before the output. It is
	// also called when ctx has ended.
	After(ctx context.Context, ended Finished) (words string, err error)
}

// before asks the hooks in their order; the first that refuses is the last.
func (d *Dispatcher) before(ctx context.Context, t target) (refusal string, err error) {
	for _, hook := range d.Hooks {
		err = guard("a hook", func() (err error) {
			if refusal, err = hook.Before(ctx, t.Tool, t.ready); err != nil {
				return fmt.Errorf("a hook failed: %w", err)
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("the call was not run: %w", err)
		}
		if refusal != "" {
			return refusal, nil
		}
	}
	return "", nil
}

// after puts the words of the hooks before the output.
func (d *Dispatcher) after(ctx context.Context, ended Finished) Result {
	var all strings.Builder
	for _, hook := range d.Hooks {
		var words string
		err := guard("a hook", func() (err error) {
			if words, err = hook.After(ctx, ended); err != nil {
				return fmt.Errorf("a hook failed: %w", err)
			}
			return nil
		})
		if err != nil {
			words = fmt.Sprintf("Note: after the call %v", err)
		}
		if words != "" {
			all.WriteString(d.Outputs.clean(strings.TrimSuffix(words, "\n")) + "\n")
		}
	}
	return ended.Result.preceded(all.String())
}

// preceded is r with words before all that the model gets.
func (r Result) preceded(words string) Result {
	if len(r.Commands) > 0 {
		r.Commands[0].Output = words + r.Commands[0].Output
	}
	r.Output = words + r.Output
	return r
}

// guard keeps a panic of what others wrote, and a runtime.Goexit, from ending
// more than the call.
func guard(what string, f func() error) error {
	err := errors.New(what + " ended without a result")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				err = &Panic{What: what, Value: value, Stack: debug.Stack()}
			}
		}()
		err = f()
	}()
	<-done
	return err
}
