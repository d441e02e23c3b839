package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Event is an event of a run with its decoded data.
type Event struct {
	eventlog.Event
	Content any   // the data in the type that belongs to the event's type; nil for an unknown type
	Damage  error // nil unless the data is not of that type; then Content has what is readable
}

// Type is the name of an event type. New types may be added; readers must skip unknown ones.
type Type = eventlog.Type

// MainAgent is the Agent of events of the run's own agent.
const MainAgent = eventlog.MainAgent

// The event types. contents has the type of their data.
const (
	TypeRunStarted    Type = "run.started"
	TypeTask          Type = "task"
	TypeWorkspace     Type = "workspace"
	TypePolicy        Type = "policy"
	TypeSetup         Type = "setup"
	TypeNetwork       Type = "network"
	TypeSecretUsed    Type = "secret_used"
	TypeService       Type = "service"
	TypeMCPServer     Type = "mcp_server"
	TypeHooks         Type = "hooks"
	TypeSkills        Type = "skills"
	TypeHook          Type = "hook"
	TypeModelRequest  Type = "model.request"
	TypeModelResponse Type = "model.response"
	TypeModelRetry    Type = "model.retry"
	TypeModelFailure  Type = "model.failure"
	TypeModelFallback Type = "model.fallback"
	TypeCompaction    Type = "compaction"
	TypeAgentStarted  Type = "agent.started"
	TypeAgentFinished Type = "agent.finished"
	TypeToolStarted   Type = "tool.started"
	TypeToolFinished  Type = "tool.finished"
	TypePlan          Type = "plan"
	TypeVerify        Type = "verify"
	TypeChange        Type = "change"
	TypeInspection    Type = "inspection"
	TypePublish       Type = "publish"
	TypeMemory        Type = "memory"
	TypeLesson        Type = "lesson"
	TypeLessons       Type = "lessons"
	TypeWarning       Type = "warning"
	TypeRunResumed    Type = "run.resumed"
	TypeRunFinished   Type = "run.finished"
)

// contents has the zero value of the data for each event type.
var contents = map[Type]any{
	TypeRunStarted:    RunStarted{},
	TypeTask:          Task{},
	TypeWorkspace:     Workspace{},
	TypePolicy:        Policy{},
	TypeSetup:         Setup{},
	TypeNetwork:       HostRequest{},
	TypeSecretUsed:    SecretUsed{},
	TypeService:       Service{},
	TypeMCPServer:     MCPServer{},
	TypeHooks:         Hooks{},
	TypeSkills:        Skills{},
	TypeHook:          HookAnswer{},
	TypeModelRequest:  ModelRequest{},
	TypeModelResponse: ModelResponse{},
	TypeModelRetry:    ModelRetry{},
	TypeModelFailure:  ModelFailure{},
	TypeModelFallback: ModelFallback{},
	TypeCompaction:    Compaction{},
	TypeAgentStarted:  AgentStarted{},
	TypeAgentFinished: AgentFinished{},
	TypeToolStarted:   ToolStarted{},
	TypeToolFinished:  ToolFinished{},
	TypePlan:          Plan{},
	TypeVerify:        Verify{},
	TypeChange:        Change{},
	TypeInspection:    Inspection{},
	TypePublish:       Publish{},
	TypeMemory:        Memory{},
	TypeLesson:        Lesson{},
	TypeLessons:       Lessons{},
	TypeWarning:       Warning{},
	TypeRunResumed:    RunResumed{},
	TypeRunFinished:   RunFinished{},
}

// TypeOf returns the type of an event with this data, or with the data behind a pointer.
func TypeOf(data any) Type {
	content := reflect.TypeOf(data)
	if content.Kind() == reflect.Pointer {
		content = content.Elem()
	}
	for t, zero := range contents {
		if reflect.TypeOf(zero) == content {
			return t
		}
	}
	panic(fmt.Sprintf("no event has data of the type %v", content))
}

// Decode returns an event with its decoded data. A call gets the event's agent.
func Decode(raw eventlog.Event) Event {
	e := Event{Event: raw}
	zero, known := contents[e.Type]
	if !known {
		return e
	}
	data := reflect.New(reflect.TypeOf(zero))
	if err := plainjson.Unmarshal(e.Data, data.Interface()); err != nil {
		e.Damage = fmt.Errorf("transcript event %d (%s): %w", e.Seq, e.Type, err)
	}
	e.Content = data.Elem().Interface()
	switch d := e.Content.(type) {
	case ToolStarted:
		d.Agent = e.Subagent()
		e.Content = d
	case ToolFinished:
		d.Agent = e.Subagent()
		e.Content = d
	}
	return e
}

// decodeLine parses a line and decodes its data. It avoids Line.Event, which checks that the data is JSON: decoding
// checks that anyway.
func decodeLine(l eventlog.Line) (Event, error) {
	raw, ok := l.Split()
	if e := Decode(raw); ok && e.Content != nil && !errors.As(e.Damage, new(*json.SyntaxError)) {
		return e, nil
	}
	raw, err := l.Event()
	return Decode(raw), err
}

// Read yields the events of a log. It ends before an incomplete last line, and with the first error: a line that
// is no event, or an error of r.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for line, err := range eventlog.Lines(r) {
			var e Event
			if err == nil {
				e, err = decodeLine(line)
			}
			if errors.As(err, new(*eventlog.TornError)) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// RunStarted is the first event: the program, its version and the settings.
type RunStarted struct {
	RunID           string          `json:"run_id"`
	Version         string          `json:"version"`       // of agent-ci
	Key             string          `json:"key"`           // the task key
	Job             json.RawMessage `json:"job"`           // the effective job as JSON, with defaults
	ChangedSettings json.RawMessage `json:"set,omitempty"` // the settings that differ from the built-in ones
	Publish         string          `json:"publish"`       // github, local or none
	// Price is the model's price in US dollars per million tokens, or nil if it is unknown.
	Price *price.List `json:"price,omitempty"`
	// Scripted is the file of the scripted session that replaces the model, or empty.
	Scripted string `json:"scripted,omitempty"`
	// OutputSchema is the schema of task.output_schema.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	RunPage      string          `json:"link,omitempty"` // page of the CI run
	// Artifacts is the page with the files that the action uploads at the end, or empty.
	Artifacts string `json:"artifacts,omitempty"`
}

// Task is the task that the model gets.
type Task struct {
	Source string `json:"source"` // prompt, issue, job, event
	Title  string `json:"title,omitempty"`
	Text   string `json:"text"`
	// RequestText has the part of Text that asks for more work on a run's pull request, or is empty.
	RequestText string `json:"request,omitempty"`
	Issue       string `json:"issue,omitempty"` // OWNER/REPO#N
	URL         string `json:"url,omitempty"`
	SHA256      string `json:"sha256"` // of Text
	// InputDigest is the SHA-256 of the task's text by people, as it was when the task was requested
	// and before parts were removed.
	InputDigest string `json:"snapshot,omitempty"`
	Trigger     string `json:"trigger,omitempty"` // the event that started the run, such as "label agent-ci"
	Actor       string `json:"actor,omitempty"`   // the account that requested the task
	ActorID     int64  `json:"actor_id,omitempty"`
	// Author and AuthorID are the account of the issue's author. Empty for a bot.
	Author   string `json:"author,omitempty"`
	AuthorID int64  `json:"author_id,omitempty"`
	// Subject is the issue or pull request that the run reviews or comments on. It is nil for a
	// change.
	Subject *Subject `json:"subject,omitempty"`
	// Repair describes the repair of a run's own pull request; nil for other tasks.
	Repair *Repair `json:"repair,omitempty"`
}

// Repair is an attempt to fix red checks of a pull request.
type Repair struct {
	HeadSHA  string  `json:"head_sha"`  // the commit with the red checks
	Attempt  int     `json:"attempt"`   // from 1, since a person last asked for or pushed something
	SpentUSD float64 `json:"spent_usd"` // by earlier attempts
}

// Subject is an issue or pull request to review or comment on.
type Subject struct {
	Repository string `json:"repository"` // OWNER/REPO
	Number     int    `json:"number"`
	URL        string `json:"url,omitempty"`
	Pull       bool   `json:"pull"`
	HeadSHA    string `json:"head_sha,omitempty"` // the commit of the pull request that the run looks at
}

// Workspace is the repository, base and checkout of the run.
type Workspace struct {
	Repository string `json:"repository,omitempty"` // OWNER/REPO
	Base       string `json:"base,omitempty"`       // branch; empty for a detached HEAD
	BaseSHA    string `json:"base_sha"`
	Branch     string `json:"branch,omitempty"` // the branch that the change goes to
	Path       string `json:"path"`             // repository.path; "." for the root
	Root       string `json:"root,omitempty"`   // absolute path of the checkout
	Cloned     bool   `json:"cloned"`           // the run cloned it into the run directory
}

// Policy describes how commands are confined.
type Policy struct {
	Sandbox  string   `json:"sandbox"`
	Network  string   `json:"network"`
	Level    string   `json:"level"`
	Layers   []string `json:"layers"`
	WorkTree string   `json:"work_tree,omitempty"` // the tree that commands work in: overlay, private
	// NoOverlay is why the work tree is no overlay, or empty.
	NoOverlay string `json:"no_overlay,omitempty"`
	// SandboxPath is the work tree's path for commands; empty if it is the checkout's path.
	SandboxPath string `json:"seen,omitempty"`
}

// Unconfined reports whether nothing confines commands.
func (p Policy) Unconfined() bool { return p.Level == "none" }

// DescribeWorkTree returns the work tree's kind, with the reason if it is no overlay. It returns ""
// if that is not recorded.
func (p Policy) DescribeWorkTree() string {
	if p.NoOverlay == "" {
		return p.WorkTree
	}
	return p.WorkTree + " (no overlay: " + p.NoOverlay + ")"
}

// Setup is a setup command that ended, or another command of the job before the agent.
type Setup struct {
	Kind     string  `json:"kind,omitempty"` // applies_if or recipe; empty for a setup command
	Name     string  `json:"name"`
	Run      string  `json:"run"`
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"seconds"`
	Log      string  `json:"log"`            // path in the run directory
	Tail     string  `json:"tail,omitempty"` // the last lines of a failed command's log
}

// HostRequest is a host that commands asked for, and the decision. Equal requests are recorded once.
type HostRequest struct {
	Sandbox  string `json:"by"`       // the sandbox: agent, setup, verify-N and others
	Target   string `json:"target"`   // host and port; the text of the request if it is unreadable
	Protocol string `json:"protocol"` // http, https
	Allowed  bool   `json:"allowed"`
	Rule     string `json:"rule,omitempty"` // the rule that decided; empty if no rule applied
	Reason   string `json:"reason"`
	// Request is the first such request, if it was refused for a secret: method and path, up to
	// RequestBytes.
	Request string `json:"request,omitempty"`
	// Remedy says how to change the job to allow the request, as the end of a sentence. It may be
	// empty.
	Remedy string `json:"remedy,omitempty"`
	Via    string `json:"via,omitempty"` // host and port of the machine's proxy, if the request goes through it
}

// RequestBytes limits a request in the transcript, in bytes.
const RequestBytes = 100

// Service is the state of a service of a sandbox.
type Service struct {
	Name            string `json:"name"`
	Sandbox         string `json:"by"`           // the sandbox that uses it: agent, setup, verify-N and others
	State           string `json:"state"`        // ready, not_ready, init_failed, ended
	Port            int    `json:"port"`         // the port for commands
	ExternalAddress string `json:"at,omitempty"` // the address of an external service
	Reason          string `json:"why,omitempty"`
	// ExitCode is set if the service exited.
	ExitCode *int    `json:"exit_code,omitempty"`
	Seconds  float64 `json:"seconds"`       // since its start
	Log      string  `json:"log,omitempty"` // path below the run directory
}

// The states of a service.
const (
	ServiceReady      = "ready"
	ServiceNotReady   = "not_ready"
	ServiceInitFailed = "init_failed"
	ServiceEnded      = "ended"
)

// ModelRequest is a request to the model: its new part, and the digest of the whole.
type ModelRequest struct {
	Turn   int    `json:"turn"` // from 1
	Model  string `json:"model"`
	SHA256 string `json:"sha256"` // of the request's body
	Bytes  int    `json:"bytes"`
	// Settings is the request's body without its input. It is set in the first request and whenever
	// it changed.
	Settings json.RawMessage   `json:"settings,omitempty"`
	Input    []json.RawMessage `json:"input"` // items that the request before lacks
	// Internal is as in ModelResponse.
	Internal bool `json:"aside,omitempty"`
}

// ModelResponse is an answer with its items as the API sent them.
type ModelResponse struct {
	Turn    int               `json:"turn"`
	ID      string            `json:"id,omitempty"`
	Status  string            `json:"status"` // completed; or incomplete, if the answer broke off
	Output  []json.RawMessage `json:"output"`
	Usage   Usage             `json:"usage"`
	Seconds float64           `json:"seconds"`
	// Internal marks a request that agent-ci makes for itself: a summary of the conversation, or the
	// job's output.
	Internal bool `json:"aside,omitempty"`
}

// IncompleteStatus is the status of an answer that broke off.
const IncompleteStatus = "incomplete"

// Usage counts tokens.
type Usage = price.Usage

// ModelRetry reports a failed request that will be repeated. If calls of a broken answer had
// started, the conversation continues after them instead.
type ModelRetry struct {
	Turn    int     `json:"turn"`
	Attempt int     `json:"attempt"`
	Error   string  `json:"error"`
	Wait    float64 `json:"wait_seconds"`
	Data    string  `json:"data,omitempty"`  // the beginning of the unreadable answer
	Usage   *Usage  `json:"usage,omitempty"` // of the failed answer
}

// ModelFailure reports that requests failed for good.
type ModelFailure struct {
	Turn     int    `json:"turn"`
	Attempts int    `json:"attempts"`
	Kind     string `json:"kind"`
	Status   int    `json:"status,omitempty"` // HTTP status
	Code     string `json:"code,omitempty"`   // the API's error code
	Error    string `json:"error"`
	Data     string `json:"data,omitempty"`  // the beginning of the unreadable answer
	Usage    *Usage `json:"usage,omitempty"` // of the failed answer
}

// ModelFallback reports a switch to another model.
type ModelFallback struct {
	Turn    int    `json:"turn"` // the last turn before the switch
	From    string `json:"from"`
	To      string `json:"to"`
	Reason  string `json:"reason"` // kind of the failure
	Message string `json:"why"`    // text of the failure
	// OmittedItems lists the items of the conversation that the new model cannot read, by their
	// positions from 0.
	OmittedItems []int       `json:"left_out,omitempty"`
	Price        *price.List `json:"price,omitempty"` // of the new model; missing if unknown
}

// RefusedItems is the reason of a compaction that removed or renamed items which the API refused.
const RefusedItems = "refused"

// Compaction reports that the conversation was shortened or repaired. Items replace all earlier
// inputs and outputs.
type Compaction struct {
	Turn         int    `json:"turn"`   // the last turn before
	Method       string `json:"method"` // endpoint, summary, trimming, repair, none
	Reason       string `json:"reason"` // window, context_length, interrupted, Refused
	TokensBefore int64  `json:"before"` // in tokens, if known
	TokensAfter  int64  `json:"after"`
	// Items are the whole conversation from now on.
	Items []json.RawMessage `json:"items"`
	Usage *Usage            `json:"usage,omitempty"` // of the request that shortened it
}

// ToolStarted is written to disk before the call has any effect.
type ToolStarted struct {
	Turn           int    `json:"turn"`
	Number         int    `json:"number"`           // number of the call in the run, from 1; ids may repeat
	Caller         int    `json:"caller,omitempty"` // number of the call whose script made this one; Number then counts within that script
	CallID         string `json:"call_id"`
	Tool           string `json:"tool"`
	Input          string `json:"input"` // the arguments, as the model wrote them
	Offered        bool   `json:"offered"`
	Mutates        bool   `json:"mutates"`
	EffectiveInput string `json:"ready,omitempty"`   // the arguments that the tool received, if they differ from Input
	Refused        bool   `json:"refused,omitempty"` // the call was not run and no hook saw it
	InText         bool   `json:"written,omitempty"` // the call was part of the answer's text
	Agent          string `json:"-"`                 // that made the call, from the event; empty for the run's own
}

// ReadableInput returns the input of a call for readers. It is empty if the answer's text already
// shows the call.
func (t ToolStarted) ReadableInput() string {
	if t.InText && !json.Valid([]byte(t.Input)) {
		return ""
	}
	return t.Input
}

// PolledSession returns the session that the call names, a command that continues after its call, or 0.
func (t ToolStarted) PolledSession() float64 {
	var named struct {
		ID float64 `json:"session_id"`
	}
	if json.Unmarshal([]byte(t.Input), &named) != nil {
		return 0
	}
	return named.ID
}

// WrittenResultsPrefix is the beginning of a message with results, for a model that calls tools in
// its text.
const WrittenResultsPrefix = "What came of your last answer, from the runner."

// LimitWords is the output of a call beyond limits.tool_calls.
const LimitWords = "Not run: limits.tool_calls is used up, and the run ends here."

// Uncounted reports whether a script's call was refused before it counted for limits.tool_calls.
func (t ToolFinished) Uncounted() bool {
	wasRefused := t.Output == LimitWords || strings.HasSuffix(t.Output, dialect.NotFromScript)
	return t.Caller > 0 && t.NotRun && wasRefused
}

// ToolFinished is the end of a call. Every started call gets one.
type ToolFinished struct {
	Turn           int            `json:"turn"`
	Number         int            `json:"number"`
	Caller         int            `json:"caller,omitempty"`
	CallID         string         `json:"call_id"`
	Tool           string         `json:"tool"`
	Failed         bool           `json:"failed"`
	Output         string         `json:"output"` // as the model received it
	Truncated      bool           `json:"truncated,omitempty"`
	File           string         `json:"file,omitempty"` // the complete output, in the run directory
	Bytes          int64          `json:"bytes"`          // of the complete output
	Seconds        float64        `json:"seconds"`
	Detail         map[string]any `json:"detail,omitempty"`
	NotRun         bool           `json:"not_run,omitempty"` // the tool did not run
	RewrittenInput string         `json:"made,omitempty"`    // the arguments after hooks rewrote them
	Agent          string         `json:"-"`                 // that made the call, from the event; empty for the run's own
	ScriptValue    any            `json:"object,omitempty"`  // the value that a script got instead of Output, from an external tool
}

// Session returns the session of a command that continues after the call, or 0.
func (d ToolFinished) Session() float64 {
	id, _ := d.Detail["session_id"].(float64)
	return id
}

// DescribeResult returns how the call ended, in words: "ok", "failed" or "exit 1".
func (d ToolFinished) DescribeResult() string {
	code, exited := d.Detail["exit_code"].(float64)
	switch {
	case exited && code != 0:
		return fmt.Sprintf("exit %.0f", code)
	case d.Failed:
		return "failed"
	}
	return "ok"
}

// CallRef identifies a call of a run.
type CallRef struct {
	Number int    `json:"number"`
	Caller int    `json:"caller,omitempty"`
	Agent  string `json:"agent,omitempty"` // that made the call; empty for the run's own
}

// String returns the call's number: "7", "7.2" for call 2 of the script in call 7, or "AGENT 7" for
// a call of a subagent.
func (r CallRef) String() string {
	if agent := r.Agent; agent != "" {
		r.Agent = ""
		return agent + " " + r.String()
	}
	if r.Caller > 0 {
		return fmt.Sprintf("%d.%d", r.Caller, r.Number)
	}
	return strconv.Itoa(r.Number)
}

// Compare orders calls by number. Calls of a script follow the script's own call. Calls of
// subagents follow those of the run's own agent.
func (r CallRef) Compare(other CallRef) int {
	return cmp.Or(strings.Compare(r.Agent, other.Agent), slices.Compare(r.sortKey(), other.sortKey()))
}

// sortKey returns the numbers to compare: the script's call, if there is one, then the call.
func (r CallRef) sortKey() []int {
	if r.Caller > 0 {
		return []int{r.Caller, r.Number}
	}
	return []int{r.Number}
}

// Ref returns the reference of the call.
func (d ToolStarted) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

// Ref returns the reference of the call.
func (d ToolFinished) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

// Plan is the agent's plan.
type Plan struct {
	Explanation string     `json:"explanation,omitempty"`
	Steps       []PlanStep `json:"steps"`
}

type PlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed
}

// CompletedCount returns the number of completed steps.
func (p Plan) CompletedCount() (n int) {
	for _, step := range p.Steps {
		if step.Status == "completed" {
			n++
		}
	}
	return n
}

// CurrentStep returns the index of the step in progress, and true. Otherwise it returns the index of
// the first unfinished step, or -1 if all are done, and false.
func (p Plan) CurrentStep() (index int, inProgress bool) {
	if index = slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.Status == "in_progress" }); index >= 0 {
		return index, true
	}
	return slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.Status != "completed" }), false
}

// Verify is the verification table after one attempt. Attempt 0 is the baseline; its rows have only
// Before.
type Verify struct {
	Attempt int         `json:"attempt"`
	Passed  bool        `json:"passed"`
	Rows    []VerifyRow `json:"rows"`
}

// VerifyRow is the row of one check. Before and After are "green", "red", "timeout" or "flaky", or
// empty if the check did not run. Log and Seconds are those of the deciding run.
type VerifyRow struct {
	Name    string  `json:"name"`
	Run     string  `json:"run"`
	Must    string  `json:"must"`
	Before  string  `json:"before"`
	After   string  `json:"after"`
	Passed  bool    `json:"passed"` // left out in JSON if the check did not get to the change
	Seconds float64 `json:"seconds"`
	Log     string  `json:"log,omitempty"` // path in the run directory
	// Flaky is "accept" if flaky counts as green. Otherwise it is empty and flaky counts as red.
	Flaky string `json:"flaky,omitempty"`
	// NotRun is why the check did not run: "when" if the change touches none of its paths.
	NotRun string     `json:"not_run,omitempty"`
	Runs   []CheckRun `json:"runs,omitempty"` // on the tree of this table, in order
	// CachedFrom is the earlier run whose cached baseline this is; empty if this run took it.
	CachedFrom string `json:"from,omitempty"`
	// Proof has the classes of the change's test files, if the check proves tests. ProofMore counts
	// files beyond the list.
	Proof     []Proof `json:"proof,omitempty"`
	ProofMore int     `json:"proof_more,omitempty"`
	// OldTests lists tests of the base that the change removed or breaks.
	OldTests []OldTest `json:"old_tests,omitempty"`
	// OldTestsUnknown is why OldTests is incomplete; empty if it is complete.
	OldTestsUnknown string `json:"old_tests_unknown,omitempty"`
	// Tail has the last lines of the log; empty for a green check.
	Tail string `json:"tail,omitempty"`
	// Failing lists the failing tests of the red runs, and FailingMore counts the tests beyond the
	// list. Both are empty for a green check. Fixed lists tests that failed before and pass now.
	Failing     []FailingTest `json:"failing,omitempty"`
	FailingMore int           `json:"failing_more,omitempty"`
	Fixed       []string      `json:"fixed,omitempty"`
	// BeforePartial means that the list of failures on the base is incomplete, so no failure is
	// called new.
	BeforePartial bool `json:"before_partial,omitempty"`
	// Worse says why a check that was red before is worse now, if that is known.
	Worse string `json:"worse,omitempty"`
}

// MarshalJSON omits passed if the check did not run on the change and NotRun is empty. Such a check
// did not fail.
func (r VerifyRow) MarshalJSON() ([]byte, error) {
	type plain VerifyRow
	if r.After != "" || r.NotRun != "" {
		return json.Marshal(plain(r))
	}
	return json.Marshal(struct {
		plain
		Passed *bool `json:"passed,omitempty"`
	}{plain: plain(r)})
}

// FailingTest is a failing test in a check's output.
type FailingTest struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"` // as in the output
	Line    int    `json:"line,omitempty"`
	Message string `json:"message,omitempty"`
	New     bool   `json:"new"` // it did not fail before
	// FailingRuns lists the runs with this failure, from 1. It is empty if all red runs on these files
	// have it.
	FailingRuns []int `json:"runs,omitempty"`
}

// DescribeRuns says in which runs the failure occurred. It returns "" if all red runs have it.
func (t FailingTest) DescribeRuns() string {
	if len(t.FailingRuns) == 0 {
		return ""
	}
	var runs []string
	for _, n := range t.FailingRuns {
		runs = append(runs, strconv.Itoa(n))
	}
	if len(runs) == 1 {
		return "only in run " + runs[0]
	}
	return "only in runs " + strings.Join(runs, ", ")
}

// Place returns the file and line of the failure, only the file, or "".
func (t FailingTest) Place() string {
	if t.File == "" || t.Line == 0 {
		return t.File
	}
	return fmt.Sprintf("%s:%d", t.File, t.Line)
}

// DescribeTests describes the tests of a check, such as "2 new failures, 1 test fixed". It returns "" if
// nothing is known.
func (r VerifyRow) DescribeTests() string {
	newFailures := 0
	for _, t := range r.Failing {
		if t.New {
			newFailures++
		}
	}
	var parts []string
	noun := "failure"
	if newFailures > 0 {
		parts, noun = append(parts, CountNoun(newFailures, "new failure")), "other failure"
	}
	if others := len(r.Failing) + r.FailingMore - newFailures; others > 0 {
		parts = append(parts, CountNoun(others, noun))
	}
	if len(r.Fixed) > 0 {
		parts = append(parts, CountNoun(len(r.Fixed), "test")+" fixed")
	}
	if r.Worse != "" && newFailures == 0 {
		parts = append(parts, r.Worse)
	}
	return strings.Join(parts, ", ")
}

// DescribeTestsAfter is like DescribeTests, but returns "" for a check that ran only on the base.
func (r VerifyRow) DescribeTestsAfter() string {
	if r.After == "" {
		return ""
	}
	return r.DescribeTests()
}

// CheckFailed is what DescribeResult returns for a check that did not meet the job's demand.
const CheckFailed = "failed"

// DescribeResult returns the result of a check on the change, in words.
func (r VerifyRow) DescribeResult() string {
	switch {
	case r.NotRun == NotConcerned:
		return "not concerned"
	case r.After == "":
		return "not run"
	case !r.Passed:
		return CheckFailed
	case r.After == FlakyState && CountsAsGreen(r.After, r.Flaky):
		return "flaky, accepted"
	case r.After != "green":
		return "failed before too"
	}
	return "passed"
}

// Change is the agent's change.
type Change struct {
	TreeSHA    string           `json:"tree_sha"`
	Files      []changeset.File `json:"files"`
	Insertions int              `json:"insertions"`
	Deletions  int              `json:"deletions"`
	Patch      string           `json:"patch"` // path in the run directory
	// BaseSHA is the commit that the change is on, if the base moved.
	BaseSHA string `json:"base_sha,omitempty"`
	SHA256  string `json:"sha256"` // of the patch
	// Diff is the beginning of the patch for people, in whole lines, up to DiffBytes. DiffCut means
	// that it is not the whole patch.
	Diff    string `json:"diff,omitempty"`
	DiffCut bool   `json:"diff_cut,omitempty"`
}

// Empty reports whether there is no change, or one without files.
func (c *Change) Empty() bool { return c == nil || len(c.Files) == 0 }

// DiffBytes limits Diff, in bytes.
const DiffBytes = 200_000

// DescribeLines returns the numbers of added and removed lines.
func (c *Change) DescribeLines() string {
	return fmt.Sprintf("+%s −%s", GroupThousands(c.Insertions), GroupThousands(c.Deletions))
}

// DescribeSize returns the numbers of changed files and lines.
func (c *Change) DescribeSize() string {
	return CountNoun(len(c.Files), "file") + ", " + c.DescribeLines()
}

// PublishBegun is the operation of a step that is about to begin. It tells a resumed run which branches and
// pull requests are its own.
const PublishBegun = "begun"

// Publish is a publishing step (commit, push or pull_request), or a post on an issue or pull
// request (review, labels or comment).
type Publish struct {
	Step      string `json:"step"`
	Branch    string `json:"branch,omitempty"`
	HeadSHA   string `json:"head_sha,omitempty"`
	Remote    string `json:"remote,omitempty"` // without credentials
	Number    int    `json:"number,omitempty"`
	URL       string `json:"url,omitempty"`
	Operation string `json:"operation,omitempty"` // created, updated, closed, none; or begun, before the step is made

	Labels         []string `json:"labels,omitempty"`   // added labels; before the step, labels to add
	Findings       int      `json:"findings,omitempty"` // findings on lines of the diff
	FindingsInText int      `json:"beside,omitempty"`   // findings in the review's text

	About string `json:"of,omitempty"` // lessons, for a pull request of lessons; empty for the change
}

// AboutLessons marks a publishing step of a separate pull request with lessons.
const AboutLessons = "lessons"

// Warning is a remark for readers of the pull request.
type Warning struct {
	Code    string `json:"code"` // snake_case
	Message string `json:"message"`
}

// RunResumed reports that a killed or stopped run continues.
type RunResumed struct {
	Version string `json:"version"` // of agent-ci
	// TornBytes is the number of bytes of an incomplete last line that were removed.
	TornBytes int `json:"torn,omitempty"`
	// PatchUndone means that a partly applied patch was undone.
	PatchUndone bool `json:"undone,omitempty"`
	// RestoredElsewhere means that the work was restored in a new tree: from the last change, or from the
	// patches of a killed run.
	RestoredElsewhere bool `json:"elsewhere,omitempty"`
	// PreviousEnd is the outcome/reason of the run's end, or empty if it was killed.
	PreviousEnd string `json:"after,omitempty"`
	// WorkTree is the kind of work tree from now on, if it changed.
	WorkTree string `json:"work_tree,omitempty"`
	// Limits lists the changed limits as KEY=VALUE.
	Limits []string `json:"limits,omitempty"`
	// Seconds is how long the run had lived so far, including time without events.
	Seconds float64 `json:"seconds,omitempty"`
}

// RunFinished is the last event of a run that ended.
type RunFinished struct {
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
	ExitCode    int    `json:"exit_code"`
	Summary     string `json:"summary,omitempty"` // the agent's last message
	Turns       int    `json:"turns"`
	Calls       int    `json:"calls"`                  // includes the calls that the API ran
	HostedCalls int    `json:"hosted_calls,omitempty"` // calls that the API ran
	Usage       Usage  `json:"usage"`
	// CostUSD is nil if a price is unknown.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Seconds float64  `json:"seconds"`
	// Files lists the files of the run directory, except the transcript and files derived from it.
	Files      []FileDigest `json:"files,omitempty"`
	BaseSHA    string       `json:"base_sha,omitempty"` // the commit that the change is on
	HeadSHA    string       `json:"head_sha,omitempty"` // the change's commit
	Branch     string       `json:"branch,omitempty"`   // the branch of that commit
	Denied     int          `json:"denied,omitempty"`   // calls and hosts that the policy refused
	Output     string       `json:"output,omitempty"`   // the file for task.output_schema in the run directory
	ResumeHint string       `json:"next,omitempty"`     // how to resume the run, for people; empty if that is impossible
}

// FileDigest describes a file of the run directory at the end of the run.
type FileDigest struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}
