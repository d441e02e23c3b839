package code

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

// How long exec and wait wait for a script by default, and at most. The defaults are those of the reference
// implementation.
const (
	execYield = 30 * time.Second
	waitYield = 10 * time.Second
	maxYield  = 10 * time.Minute
)

// exec runs the tool exec. It starts a script, and returns its output when the script ends, yields, or exceeds the waiting
// time. In the last two cases the script continues as a cell. The end of ctx stops the script.
func (t *Tools) exec(ctx context.Context, call tools.Call) (tools.Result, error) {
	began := time.Now()
	options, problem := parseOptions(call.Input)
	if problem != "" {
		return tools.Refuse(problem), nil
	}
	c, problem, err := t.startScript(ctx, call.Input)
	if err != nil {
		return tools.Result{}, err
	}
	if problem != "" {
		return tools.Refuse(problem), nil
	}
	defer t.Warm() // the model may write another script now
	return c.awaitResult(ctx, began, options.yield, options.budget)
}

type waitArguments struct {
	Cell      json.RawMessage `json:"cell_id"`
	YieldMS   float64         `json:"yield_time_ms"`
	MaxTokens float64         `json:"max_tokens"`
	Terminate bool            `json:"terminate"`
}

// wait runs the tool wait. It waits for a running script like exec, or stops it.
func (t *Tools) wait(ctx context.Context, _ tools.Call, a waitArguments) (tools.Result, error) {
	began, id := time.Now(), strings.Trim(string(a.Cell), `" `)
	c := t.findCell(id)
	if c == nil {
		return formatResult(statusFailed, began, []tools.Part{errorPart(fmt.Sprintf("exec cell %.20s not found", id))}), nil
	}
	if a.Terminate {
		c.stop()
	}
	return c.awaitResult(ctx, began, waitTime(a.YieldMS, waitYield), tools.AskedTokens(a.MaxTokens))
}

// awaitResult waits until the script ends, yields, or yield has passed, and returns its output so far. began is when the
// call began, budget the maximum tokens of output.
func (c *scriptCell) awaitResult(ctx context.Context, began time.Time, yield time.Duration, budget int) (tools.Result, error) {
	select {
	case <-c.ended:
	case <-c.newsSignal:
	case <-time.After(yield):
	case <-ctx.Done():
		c.stop()
		return c.result(context.WithoutCancel(ctx), began), ctx.Err()
	}
	result := c.result(ctx, began)
	result.Budget = budget
	return result, nil
}

// waitTime converts a call's waiting time in milliseconds, up to maxYield. It returns byDefault if ms is not positive.
func waitTime(ms float64, byDefault time.Duration) time.Duration {
	if ms <= 0 {
		return byDefault
	}
	return tools.Milliseconds(ms, 0, maxYield)
}

// status is the state of a script.
type status string

const (
	statusCompleted  status = "completed"
	statusFailed     status = "failed"
	statusTerminated status = "terminated"
	statusRunning    status = "running"
)

// result returns the script's state and its output since the last result. If the script has ended, it removes the cell.
func (c *scriptCell) result(ctx context.Context, began time.Time) tools.Result {
	ended := c.hasEnded()
	c.mu.Lock()
	unread, end, stopped := c.unread, c.end, c.stopped
	c.unread = unreadOutput{stored: map[string]string{}}
	c.mu.Unlock()
	state := statusRunning
	var images tools.Images
	parts := partsOf(ctx, &images, unread.items)
	switch {
	case !ended: // it runs
	case stopped:
		state = statusTerminated
	case end.Failed:
		state = statusFailed
		parts = append(parts, errorPart(end.Error))
	default:
		state = statusCompleted
	}
	if ended {
		c.tools.forgetCell(c)
	}
	r := formatResult(state, began, parts)
	if state == statusRunning {
		r.Output = strings.Replace(r.Output, "Script running", runningWords+c.id, 1)
	}
	r.Detail = map[string]any{"cell": c.id, "status": string(state)}
	for name, value := range images.Detail() {
		r.Detail[name] = value
	}
	if len(unread.stored) > 0 {
		r.Detail["stored"] = c.tools.redactStored(unread.stored)
	}
	return r
}

// redactStored returns stored values, and their keys, without secrets.
func (t *Tools) redactStored(stored map[string]string) map[string]any {
	all := make(map[string]any, len(stored))
	for key, value := range stored {
		if t.options.Outputs.Redact != nil {
			key, value = t.options.Outputs.Redact(key), t.options.Outputs.Redact(value)
		}
		all[key] = value
	}
	return all
}

// runningWords begins the output of exec and wait about a running script. The cell's ID follows.
const runningWords = "Script running with cell ID "

// Waiting returns the call that waits as long as possible for a script, given the output of exec or wait. runs is false
// if the output does not say that the script is still running.
func Waiting(output string) (tool string, arguments map[string]any, runs bool) {
	after, runs := strings.CutPrefix(output, runningWords)
	id, _, _ := strings.Cut(after, "\n")
	return waitSpec.Name, map[string]any{"cell_id": id, "yield_time_ms": maxYield.Milliseconds()}, runs
}

// formatResult returns a script's result in the format of the reference implementation, which models know.
func formatResult(state status, began time.Time, parts []tools.Part) tools.Result {
	return tools.Result{
		Output: fmt.Sprintf("Script %s\nWall time %.1f seconds\nOutput:", state, time.Since(began).Seconds()),
		Parts:  parts,
		Failed: state == statusFailed,
	}
}

// errorPart returns the part of a result with a script's error.
func errorPart(words string) tools.Part { return tools.Part{Text: "Script error:\n" + words} }

// maxParts is the maximum number of items that become separate parts. If there are more, adjacent texts are joined.
const maxParts = 200

// partsOf converts the items that a script showed to parts of a result. It adds their images to images.
func partsOf(ctx context.Context, images *tools.Images, items []message.Item) []tools.Part {
	var parts []tools.Part
	var texts []string // adjacent texts of the next part
	flush := func() {
		if len(texts) > 0 {
			parts, texts = append(parts, tools.Part{Text: strings.Join(texts, "\n")}), nil
		}
	}
	joinTexts := len(items) > maxParts
	for _, item := range items {
		part := partOf(ctx, images, item)
		switch {
		case part.Image == nil && part.Text == "": // nothing to show
		case joinTexts && part.Image == nil:
			texts = append(texts, part.Text)
		default:
			flush()
			parts = append(parts, part)
		}
	}
	flush()
	return parts
}

// partOf converts an item that a script showed to a part of a result. An item that cannot be shown becomes a text that
// says so.
func partOf(ctx context.Context, images *tools.Images, item message.Item) tools.Part {
	switch item.Kind {
	case message.Image:
		if _, err := images.AddURL(ctx, item.Value); err != nil {
			return tools.Part{Text: fmt.Sprintf("[An image is left out: %v]", err)}
		}
		return tools.Part{Image: &images.Added[len(images.Added)-1]}
	case message.Audio:
		return tools.Part{Text: "[Audio is left out: it can't be shown here. Make text of it with a tool.]"}
	}
	return tools.Part{Text: item.Value}
}
