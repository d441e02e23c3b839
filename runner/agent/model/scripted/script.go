// Package scripted owns scripted sessions: the answers of a model, written down, in the place of an
// API.
package scripted

import (
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
)

// Script is a scripted session: the answers of a model, written down. It takes
// the place of the API in demonstrations and tests; docs/reference/scripted-session.md
// describes the format. A Script serves one agent, in one goroutine.
type Script struct {
	// StillRuns reads the output of a call. If nil, no output means that something still runs.
	StillRuns waitCall

	turns      []scriptTurn
	turnsTaken int           // for how many of them
	agents     *scriptAgents // of the session
	polls      pollState
}

type scriptFile struct {
	Version int           `yaml:"version"`
	About   string        `yaml:"about"`
	Turns   []scriptTurn  `yaml:"turns"`
	Agents  []scriptAgent `yaml:"agents"`
}

// scriptAgent has the answers for an agent started by another.
type scriptAgent struct {
	Task  string       `yaml:"task"` // that its message holds
	Turns []scriptTurn `yaml:"turns"`
}

// scriptAgents are the scripts of a session's agents. Each serves one agent.
type scriptAgents struct {
	mu      sync.Mutex
	unused  []scriptAgent
	main    *Script       // of the run's own agent
	changed chan struct{} // closed, and made anew, when that was asked
}

// waitForAnswers waits until the run's own agent got that number of answers.
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

// nextTurn takes the next turn of a script.
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

// ForAgent returns the script for an agent started with a message: the first unused one whose task is in
// the message. Without such a script it returns one without answers.
func (s *Script) ForAgent(message string) *Script {
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

type scriptTurn struct {
	Expect []string     `yaml:"expect"`
	Output []scriptItem `yaml:"output"`
	Usage  model.Usage  `yaml:"usage"`
	Fail   *scriptFail  `yaml:"fail"`
	Hang   bool         `yaml:"hang"`  // the answer never comes
	After  int          `yaml:"after"` // it comes once the agent of the run was given so many

	items []json.RawMessage // the output in the API's form
	until []string          // ids of the calls whose end the next turn waits for
}

// scriptItem is one output item: exactly one of Say, Call and Item is set.
type scriptItem struct {
	Say       string         `yaml:"say"`
	Call      string         `yaml:"call"`
	ID        string         `yaml:"id"`        // of the call; call_<turn>_<n> when empty
	Arguments map[string]any `yaml:"arguments"` // of a function call
	Text      *string        `yaml:"text"`      // arguments as raw text, also malformed
	Input     *string        `yaml:"input"`     // of a freeform call
	Until     string         `yaml:"until"`     // "ended": the next turn waits for what the call started
	Item      map[string]any `yaml:"item"`      // as the API would send it
}

type scriptFail struct {
	Status  int    `yaml:"status"`
	Code    string `yaml:"code"`
	Message string `yaml:"message"`
}

// Read reads a scripted session and checks all of it.
func Read(name string, r io.Reader) (*Script, error) {
	var file scriptFile
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	if err := dec.Decode(&file); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read scripted session %s: the file is empty; it begins with version: 1", name)
	} else if typeError, is := errors.AsType[*yaml.TypeError](err); is {
		problem, _, _ := strings.Cut(typeError.Errors[0], " in type ")
		problem, _, _ = strings.Cut(problem, " into ")
		return nil, fmt.Errorf("read scripted session: %s is not one (%s); it begins as in examples/demo/session.yml", name, problem)
	} else if err != nil {
		return nil, fmt.Errorf("read scripted session %s: %w", name, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read scripted session %s: there is a second document; keep one", name)
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("read scripted session %s: version is %d, this agent-ci reads version 1", name, file.Version)
	}
	if len(file.Turns) == 0 {
		return nil, fmt.Errorf("read scripted session %s: it has no turns", name)
	}
	if err := readTurns(file.Turns); err != nil {
		return nil, fmt.Errorf("read scripted session %s: %w", name, err)
	}
	for i, a := range file.Agents {
		err := readTurns(a.Turns)
		if a.Task == "" || len(a.Turns) == 0 {
			err = errors.New("it needs a task, which the message of the agent holds, and turns")
		}
		if err != nil {
			return nil, fmt.Errorf("read scripted session %s: agent %d: %w", name, i+1, err)
		}
	}
	s := &Script{turns: file.Turns}
	s.agents = &scriptAgents{unused: file.Agents, main: s, changed: make(chan struct{})}
	return s, nil
}

func readTurns(turns []scriptTurn) error {
	for i := range turns {
		if err := turns[i].read(i + 1); err != nil {
			return fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return nil
}

// read makes the items of a turn: an answer or a failure.
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

// SkipTurns skips the turns that a resumed run had before.
func (s *Script) SkipTurns(turns int) { s.turnsTaken = min(turns, len(s.turns)) }

// TurnsLeft returns the number of turns not taken yet.
func (s *Script) TurnsLeft() int { return len(s.turns) - s.turnsTaken }

// Respond returns the next answer. It fails with a ScriptMismatch for a request without the
// expected text, or after the last turn.
func (s *Script) Respond(ctx context.Context, r model.Request, observe model.Observer) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	poll, err := s.poll(r.History[r.FirstNew:])
	if poll != nil {
		observe.GiveItems(poll.Output...)
	}
	if poll != nil || err != nil {
		return poll, err
	}
	if s.TurnsLeft() == 0 {
		return nil, mismatch("the run asks for answer %d, the session has %d", s.turnsTaken+1, len(s.turns))
	}
	turn, polled := s.nextTurn(), s.polls
	s.polls = pollState{callIDs: turn.until}
	if err := s.agents.waitForAnswers(ctx, turn.After); err != nil {
		return nil, err
	}
	if missing, ok := missingText(polled.newItems, turn.Expect); ok {
		failure := mismatch("turn %d expects %q in what is new to the model, and it is not there", s.turnsTaken, missing)
		if polled.unawaitedRuns {
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
	observe.GiveItems(turn.items...)
	return &model.Response{ID: scriptedID + strconv.Itoa(s.turnsTaken), Status: "completed", Output: turn.items, Usage: turn.Usage}, nil
}

// scriptedID begins the ids of scripted answers; the number of the turn follows.
const scriptedID = "resp_script_"

// Turn returns the turn of a scripted answer, or the turn before a scripted wait; 0 for an
// answer of a model.
func Turn(responseID string) int {
	rest, scripted := strings.CutPrefix(responseID, scriptedID)
	number, _, _ := strings.Cut(rest, "_")
	turn, err := strconv.Atoi(number)
	if !scripted || err != nil {
		return 0
	}
	return turn
}

func mismatch(format string, args ...any) *model.Failure {
	return &model.Failure{Kind: model.ScriptMismatch, Message: fmt.Sprintf(format, args...)}
}

// missingText returns the first expected text missing from all strings of the items.
func missingText(items []json.RawMessage, expected []string) (string, bool) {
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

type customCallItem struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Input  string `json:"input"`
}

// apiItem returns an item as the API would send it. turn and n, its number in the turn, make its ids.
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

// callID returns the id of the call at item n of a turn.
func (i scriptItem) callID(turn, n int) string {
	return cmp.Or(i.ID, fmt.Sprintf("call_%d_%d", turn, n))
}

// check verifies that an item has one kind of content.
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

func countTrue(set ...bool) int {
	n := 0
	for _, yes := range set {
		if yes {
			n++
		}
	}
	return n
}
