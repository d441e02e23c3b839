// Package scripted owns scripted sessions: files with a model's answers, used instead of an API.
package scripted

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// Script gives one agent the answers in a scripted session, instead of an API. It is for
// demonstrations and tests; docs/reference/scripted-session.md describes the format. A Script is
// not safe for concurrent use.
type Script struct {
	// StillRuns reports whether the output of a call says that something still runs. Nil means never.
	StillRuns waitCall

	turns      []scriptTurn
	turnsTaken int           // number of turns whose answers were given
	agents     *scriptAgents // the scripts of all agents of the session
	polls      pollState
}

// scriptFile is the content of a session's file.
type scriptFile struct {
	Version int              `yaml:"version"`
	About   string           `yaml:"about"`
	Turns   []scriptTurn     `yaml:"turns"`
	Agents  []scriptSubagent `yaml:"agents"`
}

// scriptSubagent has the answers for a subagent.
type scriptSubagent struct {
	Task  string       `yaml:"task"` // text by which its first message is recognized
	Turns []scriptTurn `yaml:"turns"`
}

// scriptAgents are the scripts of a session's agents. Each script serves one agent.
type scriptAgents struct {
	mu      sync.Mutex
	unused  []scriptSubagent
	main    *Script       // the script of the run's own agent
	changed chan struct{} // closed and replaced when main gives an answer
}

// waitForAnswers waits until the run's own agent has got this number of answers.
func (a *scriptAgents) waitForAnswers(ctx context.Context, answers int) error {
	for {
		a.mu.Lock()
		enough, changed := a.main.turnsTaken >= answers, a.changed
		a.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextTurn takes the script's next turn, and wakes agents that wait for it.
func (s *Script) nextTurn() scriptTurn {
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	s.turnsTaken++
	if s == s.agents.main {
		close(s.agents.changed)
		s.agents.changed = make(chan struct{})
	}
	return s.turns[s.turnsTaken-1]
}

// ForSubagent returns the script for a subagent that is started with message: the first unused one whose task is part of
// message. If there is none, it returns a script without answers.
func (s *Script) ForSubagent(message string) *Script {
	s.agents.mu.Lock()
	defer s.agents.mu.Unlock()
	for i, a := range s.agents.unused {
		if strings.Contains(message, a.Task) {
			s.agents.unused = slices.Delete(s.agents.unused, i, i+1)
			return &Script{StillRuns: s.StillRuns, turns: a.Turns, agents: s.agents}
		}
	}
	return &Script{agents: s.agents}
}

// scriptTurn is one answer of the model, and the request that it expects.
type scriptTurn struct {
	Expect []string     `yaml:"expect"`
	Output []scriptItem `yaml:"output"`
	Usage  model.Usage  `yaml:"usage"`
	Fail   *scriptFail  `yaml:"fail"`
	Hang   bool         `yaml:"hang"`  // the answer never comes
	After  int          `yaml:"after"` // the answer waits until the run's own agent has got this number of answers

	items []json.RawMessage // Output in the API's form
	until []string          // IDs of the calls that must end before the next turn
}

// scriptItem is one output item: exactly one of Say, Call and Item is set.
type scriptItem struct {
	Say       string         `yaml:"say"`
	Call      string         `yaml:"call"`
	ID        string         `yaml:"id"`        // of the call; empty means call_<turn>_<n>
	Arguments map[string]any `yaml:"arguments"` // of a function call
	Text      *string        `yaml:"text"`      // arguments as raw text, which may be malformed
	Input     *string        `yaml:"input"`     // of a freeform call
	Until     string         `yaml:"until"`     // "ended": the next turn waits for what the call started
	Item      map[string]any `yaml:"item"`      // an item as the API would send it
}

// scriptFail is an error that the API answers instead.
type scriptFail struct {
	Status  int    `yaml:"status"`
	Code    string `yaml:"code"`
	Message string `yaml:"message"`
}

// Read parses a scripted session and checks all of it. name is the file's name in errors.
func Read(name string, r io.Reader) (*Script, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read scripted session %s: %w", name, err)
	}
	var file scriptFile
	dec := yaml.NewDecoder(bytes.NewReader(content))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, decodeFailure(name, content, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read scripted session %s: there is a second document; keep one", name)
	}
	if err := file.read(); err != nil {
		return nil, fmt.Errorf("read scripted session %s: %w", name, err)
	}
	s := &Script{turns: file.Turns}
	s.agents = &scriptAgents{unused: file.Agents, main: s, changed: make(chan struct{})}
	return s, nil
}

// decodeFailure returns the error for a file whose content the YAML decoder refused with err.
func decodeFailure(name string, content []byte, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("read scripted session %s: the file is empty; it begins with version: 1", name)
	}
	if typeError, isTypeError := errors.AsType[*yaml.TypeError](err); isTypeError {
		problem, _, _ := strings.Cut(typeError.Errors[0], " in type ")
		problem, _, _ = strings.Cut(problem, " into ")
		return fmt.Errorf("read scripted session: %s is not one (%s); it begins as in examples/demo/session.yml", name, problem)
	}
	if _, problems := config.ParseDocument(name, content); len(problems) > 0 && len(content) <= config.MaxSize {
		return fmt.Errorf("read scripted session: %v", problems[0]) // in plainer words
	}
	return fmt.Errorf("read scripted session %s: %w", name, err)
}

// read checks the file and calls read for each turn.
func (f *scriptFile) read() error {
	if f.Version != 1 {
		return fmt.Errorf("version is %d, this agent-ci reads version 1", f.Version)
	}
	if len(f.Turns) == 0 {
		return errors.New("it has no turns")
	}
	if err := readTurns(f.Turns); err != nil {
		return err
	}
	for i, a := range f.Agents {
		if a.Task == "" || len(a.Turns) == 0 {
			return fmt.Errorf("agent %d: it needs a task, which the message of the agent holds, and turns", i+1)
		}
		if err := readTurns(a.Turns); err != nil {
			return fmt.Errorf("agent %d: %w", i+1, err)
		}
	}
	return nil
}

// readTurns calls read for each turn.
func readTurns(turns []scriptTurn) error {
	for i := range turns {
		if err := turns[i].read(i + 1); err != nil {
			return fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return nil
}

// read checks the turn and sets its items and until from its output. number is the turn's number, from 1.
func (t *scriptTurn) read(number int) error {
	if countTrue(t.Fail != nil, t.Hang, len(t.Output) > 0) > 1 {
		return errors.New("a turn that fails or hangs has no output")
	}
	if t.Fail != nil && (t.Fail.Status < 400 || t.Fail.Status > 599) {
		return fmt.Errorf("fail.status is %d; it is an HTTP status from 400 to 599", t.Fail.Status)
	}
	t.items = make([]json.RawMessage, len(t.Output))
	for n, item := range t.Output {
		value, err := item.apiItem(number, n+1)
		if err != nil {
			return fmt.Errorf("output %d: %w", n+1, err)
		}
		if t.items[n], err = rawitem.Encode(value); err != nil {
			return err
		}
		if item.Until != "" {
			t.until = append(t.until, item.callID(number, n+1))
		}
	}
	return nil
}

// SkipTurns skips the first turns, which a resumed run has used already.
func (s *Script) SkipTurns(turns int) { s.turnsTaken = min(turns, len(s.turns)) }

// TurnsLeft returns the number of turns not taken yet.
func (s *Script) TurnsLeft() int { return len(s.turns) - s.turnsTaken }

// Respond returns the next answer of the script. If calls of the last turn must end first, it returns an answer that
// waits for them. A request without the expected texts, or after the last turn, gives a *model.Failure of the kind
// ScriptMismatch.
func (s *Script) Respond(ctx context.Context, r model.Request, observe model.Observer) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	poll, err := s.poll(r.History[r.FirstNew:])
	if err != nil {
		return nil, err
	}
	if poll != nil {
		giveItems(observe, poll.Output)
		return poll, nil
	}
	if s.TurnsLeft() == 0 {
		return nil, mismatch("the run asks for answer %d, the session has %d", s.turnsTaken+1, len(s.turns))
	}
	turn, sinceLastTurn := s.nextTurn(), s.polls
	s.polls = pollState{callIDs: turn.until}
	if err := s.agents.waitForAnswers(ctx, turn.After); err != nil {
		return nil, err
	}
	if missing, isMissing := missingText(sinceLastTurn.newItems, turn.Expect); isMissing {
		failure := mismatch("turn %d expects %q in what is new to the model, and it is not there", s.turnsTaken, missing)
		if sinceLastTurn.unawaitedRuns {
			failure.Advice = stillRunsAdvice
		}
		return nil, failure
	}
	if turn.Hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if turn.Fail != nil {
		return nil, exchange.Failure(turn.Fail.Status, turn.Fail.Code, turn.Fail.Message)
	}
	giveItems(observe, turn.items)
	return &model.Response{ID: scriptedID + strconv.Itoa(s.turnsTaken), Status: "completed", Output: turn.items, Usage: turn.Usage}, nil
}

// giveItems gives an answer's items to observe.
func giveItems(observe model.Observer, items []json.RawMessage) {
	for _, item := range items {
		observe.TakeItem(item)
	}
}

// scriptedID is the prefix of the IDs of scripted answers. The number of the turn follows.
const scriptedID = "resp_script_"

// Turn returns the number of the turn in the ID of a scripted answer. For an answer that waits for
// calls, that is the turn with the calls. It returns 0 for the ID of another answer.
func Turn(responseID string) int {
	rest, isScripted := strings.CutPrefix(responseID, scriptedID)
	number, _, _ := strings.Cut(rest, "_")
	turn, err := strconv.Atoi(number)
	if !isScripted || err != nil {
		return 0
	}
	return turn
}

func mismatch(format string, args ...any) *model.Failure {
	return &model.Failure{Kind: model.ScriptMismatch, Message: fmt.Sprintf(format, args...)}
}

// missingText returns the first expected text that no string value of the items contains.
func missingText(items []json.RawMessage, expected []string) (missing string, isMissing bool) {
	var text strings.Builder
	for _, item := range items {
		var value any
		if err := json.Unmarshal(item, &value); err == nil {
			writeStrings(&text, value)
		}
	}
	for _, want := range expected {
		if !strings.Contains(text.String(), want) {
			return want, true
		}
	}
	return "", false
}

// writeStrings writes all string values in a decoded JSON value, one per line.
func writeStrings(b *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
	case []any:
		for _, element := range v {
			writeStrings(b, element)
		}
	case map[string]any:
		for _, element := range v {
			writeStrings(b, element)
		}
	}
}

// customCallItem is a call of a freeform tool in the API's form.
type customCallItem struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Input  string `json:"input"`
}

// apiItem returns an item as the API would send it. Its IDs consist of turn, the turn's number, and n, the item's
// number in the turn.
func (i scriptItem) apiItem(turn, n int) (any, error) {
	place := fmt.Sprintf("%d_%d", turn, n)
	callID := i.callID(turn, n)
	if err := i.check(); err != nil {
		return nil, err
	}
	switch {
	case i.Item != nil:
		return i.Item, nil
	case i.Say != "":
		return rawitem.ModelMessage(place, i.Say), nil
	case i.Input != nil:
		return customCallItem{"custom_tool_call", "ctc_" + place, callID, i.Call, *i.Input}, nil
	case i.Text != nil:
		return rawitem.FunctionCall(place, callID, i.Call, *i.Text, nil), nil
	}
	if i.Arguments == nil {
		i.Arguments = map[string]any{}
	}
	arguments, err := rawitem.Encode(i.Arguments)
	if err != nil {
		return nil, err
	}
	return rawitem.FunctionCall(place, callID, i.Call, string(arguments), nil), nil
}

// callID returns the ID of the call that is item n of a turn.
func (i scriptItem) callID(turn, n int) string {
	return cmp.Or(i.ID, fmt.Sprintf("call_%d_%d", turn, n))
}

// check returns an error unless the item has exactly one kind of content and only keys that belong to it.
func (i scriptItem) check() error {
	if countTrue(i.Say != "", i.Call != "", i.Item != nil) != 1 {
		return errors.New("give exactly one of say, call and item")
	}
	arguments := countTrue(i.Arguments != nil, i.Text != nil, i.Input != nil)
	if arguments > 1 {
		return errors.New("give at most one of arguments, text and input")
	}
	if i.Call == "" && (arguments > 0 || i.ID != "" || i.Until != "") {
		return errors.New("id, arguments, text, input and until belong to a call")
	}
	if i.Until != "" && i.Until != untilEnded {
		return fmt.Errorf("until is %q; it can only be %s", i.Until, untilEnded)
	}
	return nil
}

func countTrue(conditions ...bool) int {
	n := 0
	for _, holds := range conditions {
		if holds {
			n++
		}
	}
	return n
}
