package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxQuestionRounds is the maximum number of attempts for a call. The server may ask questions before each.
const maxQuestionRounds = 3

// Call calls a tool of the server once. A failed call is a failed result; the error is only that of ctx. If ctx
// ends first, the library sends the server a cancellation.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage) (tools.Result, error) {
	detail := map[string]any{"mcp_server": s.server.Name, "mcp_tool": oneLine(tool)}
	declinedBefore := s.declined.Load()
	limited, cancel := s.callContext(ctx)
	defer cancel()
	answer, err := s.callWithAnswers(limited, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if n := s.declined.Load() - declinedBefore; n > 0 {
		detail["declined"] = n // it includes questions of parallel calls
	}
	if err != nil {
		if ctx.Err() != nil {
			return tools.Result{Detail: detail}, ctx.Err()
		}
		return s.failedResult(err, detail), nil
	}
	result := s.convertAnswer(answer, detail)
	call, _ := tools.CallOf(ctx)
	fromScript := call.Caller > 0
	if fromScript {
		result.Object = jsonObject(answer)
	}
	return result, nil
}

// callContext returns the context of a call to the server. It ends after the server's CallTimeout, or with the
// session.
func (s *Session) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.server.CallTimeout)
	release := context.AfterFunc(s.lifetime, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

// callWithAnswers calls a tool. If the server answers with questions, it repeats the call and declines them.
func (s *Session) callWithAnswers(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	for range maxQuestionRounds {
		answer, err := s.link.session.CallTool(ctx, params)
		if err != nil || !answer.NeedsInput() {
			return answer, err
		}
		answers, err := s.decline(answer.InputRequests)
		if err != nil {
			return nil, err
		}
		again := *params
		again.InputResponses, again.RequestState = answers, answer.RequestState
		params = &again
	}
	return nil, errTooManyQuestions
}

// errTooManyQuestions reports a server that asks questions in maxQuestionRounds attempts.
var errTooManyQuestions = errors.New("it asks a person again and again, and nobody is there to answer")

// decline declines a server's questions to a person. It returns an error for other requests, since the
// session offers servers none.
func (s *Session) decline(requests sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	answers := sdk.InputResponseMap{}
	for id, request := range requests {
		if _, isQuestion := request.(*sdk.ElicitParams); !isQuestion {
			return nil, errors.New("it asks for what was not offered to it: a model, or folders of the client")
		}
		s.declined.Add(1)
		answers[id] = &sdk.ElicitResult{Action: "decline"}
	}
	return answers, nil
}

// sessionEndingMessages lists the library's messages for HTTP answers after which it ends the session.
// The library has no error values for these.
var sessionEndingMessages = []string{"malformed event", "failed to decode", "failed to read body"}

// endsSession reports whether the library ends the session after a call's error.
func endsSession(err error) bool {
	return errors.Is(err, sdk.ErrSessionMissing) ||
		slices.ContainsFunc(sessionEndingMessages, func(message string) bool { return strings.Contains(err.Error(), message) })
}

// failedResult returns the model's result for a call that failed with err, and adds the cause to detail. If err
// is of a kind that ends the session, failedResult ends it.
func (s *Session) failedResult(err error, detail map[string]any) tools.Result {
	refusal, isRefusal := serverRefusal(err)
	endReason := s.Ended()
	if endReason == nil && !isRefusal && endsSession(err) {
		endReason = err
	}
	var output string
	switch {
	case endReason != nil:
		s.end(endReason)
		detail["ended"] = true
		output = fmt.Sprintf("the MCP server %s has ended (%s). What the call did until then is not known; it was not made again", s.server.Name, oneLine(endReason.Error()))
	case errors.Is(err, context.DeadlineExceeded):
		detail["timed_out"] = true
		output = fmt.Sprintf("the MCP server %s did not answer within %v; the call was cancelled. What it did until then is not known", s.server.Name, s.server.CallTimeout)
	case isRefusal:
		detail["code"] = refusal.Code
		output = fmt.Sprintf("the MCP server %s refused the call: %s", s.server.Name, clip.Visible(refusal.Message, maxRefusal))
	default:
		output = fmt.Sprintf("the call of the MCP server %s failed: %s", s.server.Name, oneLine(err.Error()))
	}
	return tools.Result{Output: output, Failed: true, Detail: detail}
}

// maxRefusal is the maximum length of a server's error message for the model, in bytes.
const maxRefusal = 4000
