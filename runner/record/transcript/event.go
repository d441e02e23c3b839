package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Event is an event of a run. Its data is the type behind the name of its type.
type Event = eventlog.Event

// Type is the name of an event. Types may be added; readers keep and skip unknown ones.
type Type = eventlog.Type

// MainAgent is the Agent of the events of a run's own agent.
const MainAgent = eventlog.MainAgent

// The event types, with the type of their data.
const (
	TypeRunStarted    Type = "run.started"    // RunStarted
	TypeTask          Type = "task"           // Task
	TypeWorkspace     Type = "workspace"      // Workspace
	TypePolicy        Type = "policy"         // Policy
	TypeSetup         Type = "setup"          // Setup
	TypeNetwork       Type = "network"        // Network
	TypeSecretUsed    Type = "secret_used"    // SecretUsed
	TypeService       Type = "service"        // Service
	TypeMCPServer     Type = "mcp_server"     // MCPServer
	TypeHooks         Type = "hooks"          // Hooks
	TypeSkills        Type = "skills"         // Skills
	TypeHook          Type = "hook"           // Hook
	TypeModelRequest  Type = "model.request"  // ModelRequest
	TypeModelResponse Type = "model.response" // ModelResponse
	TypeModelRetry    Type = "model.retry"    // ModelRetry
	TypeModelFailure  Type = "model.failure"  // ModelFailure
	TypeModelFallback Type = "model.fallback" // ModelFallback
	TypeCompaction    Type = "compaction"     // Compaction
	TypeAgentStarted  Type = "agent.started"  // AgentStarted
	TypeAgentFinished Type = "agent.finished" // AgentFinished
	TypeToolStarted   Type = "tool.started"   // ToolStarted
	TypeToolFinished  Type = "tool.finished"  // ToolFinished
	TypePlan          Type = "plan"           // Plan
	TypeVerify        Type = "verify"         // Verify
	TypeChange        Type = "change"         // Change
	TypeInspection    Type = "inspection"     // Inspection
	TypePublish       Type = "publish"        // Publish
	TypeMemory        Type = "memory"         // Memory
	TypeLesson        Type = "lesson"         // Lesson
	TypeLessons       Type = "lessons"        // Lessons
	TypeWarning       Type = "warning"        // Warning
	TypeRunResumed    Type = "run.resumed"    // RunResumed
	TypeRunFinished   Type = "run.finished"   // RunFinished
)

// RunStarted is the first event: program, version and settings.
type RunStarted struct {
	RunID   string          `json:"run_id"`
	Version string          `json:"version"`       // of agent-ci
	Key     string          `json:"key"`           // the task key
	Job     json.RawMessage `json:"job"`           // the effective job, defaults filled in, as JSON
	Set     json.RawMessage `json:"set,omitempty"` // what of it is not as built in
	Publish string          `json:"publish"`       // github, local or none
	// Price of the model in US dollars for a million tokens; nil when it is not
	// known.
	Price *price.List `json:"price,omitempty"`
	// Scripted is the name of the scripted session used instead of a model, or empty.
	Scripted string `json:"scripted,omitempty"`
	// OutputSchema is the schema of task.output_schema.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Link         string          `json:"link,omitempty"` // page of the CI run
	// Artifacts is the page with the files uploaded by the action at the end, or empty.
	Artifacts string `json:"artifacts,omitempty"`
}

// Task is the task as sent to the model.
type Task struct {
	Source string `json:"source"` // prompt, issue, job, event
	Title  string `json:"title,omitempty"`
	Text   string `json:"text"`
	// Request holds the words of Text that ask for more on a run's pull request, or empty.
	Request string `json:"request,omitempty"`
	Issue   string `json:"issue,omitempty"` // OWNER/REPO#N
	URL     string `json:"url,omitempty"`
	SHA256  string `json:"sha256"` // of Text
	// Snapshot is the SHA-256 of the people's text for the task when requested, before any removal.
	Snapshot string `json:"snapshot,omitempty"`
	Trigger  string `json:"trigger,omitempty"` // of an event: "label agent-ci"
	Actor    string `json:"actor,omitempty"`   // the account that asked
	ActorID  int64  `json:"actor_id,omitempty"`
	// Author and AuthorID are the account of the issue's author, unless it is a bot.
	Author   string `json:"author,omitempty"`
	AuthorID int64  `json:"author_id,omitempty"`
	// Subject is the target of a review or comment; nil for a change.
	Subject *Subject `json:"subject,omitempty"`
	// Repair is the part of a run's own pull request to fix; nil for other tasks.
	Repair *Repair `json:"repair,omitempty"`
}

// Repair is an attempt to mend red checks of a pull request.
type Repair struct {
	HeadSHA  string  `json:"head_sha"` // the commit of the pull request that they are red on
	Attempt  int     `json:"attempt"`
	SpentUSD float64 `json:"spent_usd"` // by attempts before this one
}

// Subject is an issue or pull request to comment on.
type Subject struct {
	Repository string `json:"repository"` // OWNER/REPO
	Number     int    `json:"number"`
	URL        string `json:"url,omitempty"`
	Pull       bool   `json:"pull"`
	HeadSHA    string `json:"head_sha,omitempty"` // the commit of a pull request that the run looks at
}

type Workspace struct {
	Repository string `json:"repository,omitempty"` // OWNER/REPO
	Base       string `json:"base,omitempty"`       // branch; empty when detached
	BaseSHA    string `json:"base_sha"`
	Branch     string `json:"branch,omitempty"` // branch that a change goes to
	Path       string `json:"path"`             // sub-folder, "." for the root
	Root       string `json:"root,omitempty"`   // of the checkout, absolute
	Cloned     bool   `json:"cloned"`           // into the run directory
}

type Policy struct {
	Sandbox  string   `json:"sandbox"`
	Network  string   `json:"network"`
	Level    string   `json:"level"`
	Layers   []string `json:"layers"`
	WorkTree string   `json:"work_tree,omitempty"` // what commands work in: overlay, private
	// NoOverlay is the reason against an overlay, if the job permits one.
	NoOverlay string `json:"no_overlay,omitempty"`
	// Seen is the work tree's path for commands; empty for the checkout's path.
	Seen string `json:"seen,omitempty"`
}

func (p Policy) Unconfined() bool { return p.Level == "none" }

// DescribeWorkTree describes the work tree and the reason against an overlay, or returns "" if not
// recorded.
func (p Policy) DescribeWorkTree() string {
	if p.NoOverlay == "" {
		return p.WorkTree
	}
	return p.WorkTree + " (no overlay: " + p.NoOverlay + ")"
}

// Setup is a finished setup command, or another command of the job before the agent.
type Setup struct {
	Kind     string  `json:"kind,omitempty"` // applies_if, recipe; empty for a setup command
	Name     string  `json:"name"`
	Run      string  `json:"run"`
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"seconds"`
	Log      string  `json:"log"`            // path below the run directory
	Tail     string  `json:"tail,omitempty"` // its last lines, of a command that failed
}

// Network is a host requested by commands, with the decision. It is recorded once per distinct row.
type Network struct {
	By       string `json:"by"`       // the sandbox: agent, setup, verify-N
	Target   string `json:"target"`   // host and port; as it was asked for where that can't be read
	Protocol string `json:"protocol"` // http, https
	Allowed  bool   `json:"allowed"`
	Rule     string `json:"rule,omitempty"` // that decided; empty where none is for it
	Reason   string `json:"reason"`
	// Request is the first request refused for a secret: method and path, up to RequestBytes.
	Request string `json:"request,omitempty"`
	// Remedy is the change that would allow the request, as the end of a sentence, or empty.
	Remedy string `json:"remedy,omitempty"`
	Via    string `json:"via,omitempty"` // host and port of the machine's proxy that it is reached by
}

// RequestBytes bounds a request in the transcript.
const RequestBytes = 100

// Service is the state of a service for a sandbox.
type Service struct {
	Name  string `json:"name"`
	By    string `json:"by"`           // the sandbox: agent, setup, verify-N
	State string `json:"state"`        // ready, not_ready, init_failed, ended
	Port  int    `json:"port"`         // at which commands find it
	At    string `json:"at,omitempty"` // the address of one that runs already
	Why   string `json:"why,omitempty"`
	// ExitCode is set for an exited service.
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

// ModelRequest contains the new part of a request and the digest of the whole.
type ModelRequest struct {
	Turn   int    `json:"turn"` // from 1
	Model  string `json:"model"`
	SHA256 string `json:"sha256"` // of the request's body
	Bytes  int    `json:"bytes"`
	// Settings is the body without its input; it stands in the first request
	// and whenever it differs from the one before.
	Settings json.RawMessage   `json:"settings,omitempty"`
	Input    []json.RawMessage `json:"input"` // items that the request before did not have
	Aside    bool              `json:"aside,omitempty"`
}

// ModelResponse is an answer with its items as sent by the API.
type ModelResponse struct {
	Turn    int               `json:"turn"`
	ID      string            `json:"id,omitempty"`
	Status  string            `json:"status"` // completed; incomplete when it broke off and this is what stays of it
	Output  []json.RawMessage `json:"output"`
	Usage   Usage             `json:"usage"`
	Seconds float64           `json:"seconds"`
	// Aside marks a request of the runner itself: a summary of the conversation, or the job's
	// output.
	Aside bool `json:"aside,omitempty"`
}

// Incomplete is the status of an aborted answer.
const Incomplete = "incomplete"

// Usage counts tokens.
type Usage = price.Usage

// ModelRetry reports a failed request to be repeated, or continued after its calls that had
// started.
type ModelRetry struct {
	Turn    int     `json:"turn"`
	Attempt int     `json:"attempt"`
	Error   string  `json:"error"`
	Wait    float64 `json:"wait_seconds"`
	Data    string  `json:"data,omitempty"`  // the beginning of what could not be read
	Usage   *Usage  `json:"usage,omitempty"` // of the answer that failed
}

// ModelFailure reports a final failure.
type ModelFailure struct {
	Turn     int    `json:"turn"`
	Attempts int    `json:"attempts"`
	Kind     string `json:"kind"`
	Status   int    `json:"status,omitempty"` // of HTTP
	Code     string `json:"code,omitempty"`   // the API's
	Error    string `json:"error"`
	Data     string `json:"data,omitempty"`  // the beginning of what could not be read
	Usage    *Usage `json:"usage,omitempty"` // of the answer that failed
}

// ModelFallback reports a switch to another model.
type ModelFallback struct {
	Turn   int    `json:"turn"` // the last one before
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"` // kind of the failure
	Why    string `json:"why"`    // its words
	// LeftOut lists the positions in the conversation, from 0, of items that the other model cannot
	// read.
	LeftOut []int       `json:"left_out,omitempty"`
	Price   *price.List `json:"price,omitempty"` // of the other model; missing when it is not known
}

// Refused is the reason of a compaction that removed or renamed items refused by the API.
const Refused = "refused"

// Compaction reports a shortened or repaired conversation. Items replace all earlier inputs and
// outputs.
type Compaction struct {
	Turn   int    `json:"turn"`   // the last one before
	Method string `json:"method"` // endpoint, summary, trimming, repair, none
	Reason string `json:"reason"` // window, context_length, interrupted, Refused
	Before int64  `json:"before"` // tokens, as far as known
	After  int64  `json:"after"`
	// Items are the conversation from here on.
	Items []json.RawMessage `json:"items"`
	Usage *Usage            `json:"usage,omitempty"` // of the endpoint
}

// ToolStarted is durable before the call has any effect.
type ToolStarted struct {
	Turn    int    `json:"turn"`
	Number  int    `json:"number"`           // of the call in the run, from 1; an id may come twice
	Caller  int    `json:"caller,omitempty"` // number of the call whose script made this one, within which Number then counts
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Input   string `json:"input"` // the arguments as the model wrote them
	Offered bool   `json:"offered"`
	Mutates bool   `json:"mutates"`
	Ready   string `json:"ready,omitempty"`   // the arguments as the tool received them, if they differ from Input
	Refused bool   `json:"refused,omitempty"` // the call was not run, and no hook was asked
	Written bool   `json:"written,omitempty"` // the call was part of the answer's text
	Agent   string `json:"-"`                 // that made the call, from the event; empty for the run's own agent
}

// ReadableInput returns the input of a call for readers. It is empty for text already in the answer's
// words.
func (t ToolStarted) ReadableInput() string {
	if t.Written && !json.Valid([]byte(t.Input)) {
		return ""
	}
	return t.Input
}

// WrittenResultsPrefix is the beginning of the message with results for a model without tools.
const WrittenResultsPrefix = "What came of your last answer, from the runner."

// LimitWords is the output of a call that limits.tool_calls refuses.
const LimitWords = "Not run: limits.tool_calls is used up, and the run ends here."

// Uncounted reports a call of a script that was refused before it counted.
func (t ToolFinished) Uncounted() bool {
	return t.Caller > 0 && t.NotRun && (t.Output == LimitWords || strings.HasSuffix(t.Output, dialect.NotFromScript))
}

// ToolFinished is the end of a call. Each started call has one.
type ToolFinished struct {
	Turn      int            `json:"turn"`
	Number    int            `json:"number"`
	Caller    int            `json:"caller,omitempty"`
	CallID    string         `json:"call_id"`
	Tool      string         `json:"tool"`
	Failed    bool           `json:"failed"`
	Output    string         `json:"output"` // as the model got it
	Truncated bool           `json:"truncated,omitempty"`
	File      string         `json:"file,omitempty"` // the whole output, below the run directory
	Bytes     int64          `json:"bytes"`          // of the whole output
	Seconds   float64        `json:"seconds"`
	Detail    map[string]any `json:"detail,omitempty"`
	NotRun    bool           `json:"not_run,omitempty"` // the tool was not asked
	Made      string         `json:"made,omitempty"`    // the arguments that hooks had it asked with
	Agent     string         `json:"-"`                 // that made the call, from the event; empty for the run's own agent
	Object    any            `json:"object,omitempty"`  // what a script got in the place of Output, of a tool from outside
}

// CallRef tells a call from the others of its run.
type CallRef struct {
	Number int    `json:"number"`
	Caller int    `json:"caller,omitempty"`
	Agent  string `json:"agent,omitempty"` // that made it; empty for the run's own
}

// By returns the call as one of an event's agent.
func (r CallRef) By(agent string) CallRef {
	if r.Agent = agent; agent == MainAgent {
		r.Agent = ""
	}
	return r
}

// String returns the number of a call, after the numbers of its script's call and the name of its
// agent.
func (r CallRef) String() string {
	if r.Agent != "" {
		return r.Agent + " " + r.By("").String()
	}
	if r.Caller > 0 {
		return fmt.Sprintf("%d.%d", r.Caller, r.Number)
	}
	return strconv.Itoa(r.Number)
}

// Compare orders calls by their numbers, those of a script behind its own, and those of other
// agents behind all of the run's own.
func (r CallRef) Compare(other CallRef) int {
	return cmp.Or(strings.Compare(r.Agent, other.Agent), slices.Compare(r.path(), other.path()))
}

func (r CallRef) path() []int {
	if r.Caller > 0 {
		return []int{r.Caller, r.Number}
	}
	return []int{r.Number}
}

// Ref identifies the call.
func (d ToolStarted) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

// Ref identifies the call.
func (d ToolFinished) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

type Plan struct {
	Explanation string     `json:"explanation,omitempty"`
	Steps       []PlanStep `json:"steps"`
}

type PlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed
}

// Done counts the finished steps.
func (p Plan) Done() (n int) {
	for _, step := range p.Steps {
		if step.Status == "completed" {
			n++
		}
	}
	return n
}

// Current returns the index of the step in progress, or else of the first unfinished step; -1 if
// all are done.
func (p Plan) Current() (at int, begun bool) {
	if at = slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.Status == "in_progress" }); at >= 0 {
		return at, true
	}
	return slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.Status != "completed" }), false
}

// Verify is the whole verification table after one attempt. Attempt 0 is the
// baseline: only Before is set in its rows.
type Verify struct {
	Attempt int         `json:"attempt"`
	Passed  bool        `json:"passed"`
	Rows    []VerifyRow `json:"rows"`
}

// VerifyRow is one verify command. Before and After are "green", "red", "timeout", "flaky", or
// empty if not run. Log and Seconds are those of the deciding run.
type VerifyRow struct {
	Name    string  `json:"name"`
	Run     string  `json:"run"`
	Must    string  `json:"must"`
	Before  string  `json:"before"`
	After   string  `json:"after"`
	Passed  bool    `json:"passed"` // missing in JSON where the check did not come to the change
	Seconds float64 `json:"seconds"`
	Log     string  `json:"log,omitempty"` // below the run directory
	// Flaky is "accept" if flaky counts as green. Otherwise flaky counts as red.
	Flaky string `json:"flaky,omitempty"`
	// NotRun is the reason for not running: "when" if the change touches none of its paths.
	NotRun string     `json:"not_run,omitempty"`
	Runs   []CheckRun `json:"runs,omitempty"` // on the tree of this table, as they came
	// From names the run that cached the baseline; empty for this run.
	From string `json:"from,omitempty"`
	// Proof has the classes of the change's test files, by a proving check. ProofMore counts the
	// omitted ones.
	Proof     []Proof `json:"proof,omitempty"`
	ProofMore int     `json:"proof_more,omitempty"`
	// OldTests lists the base's tests that the change removed or breaks.
	OldTests []OldTest `json:"old_tests,omitempty"`
	// OldTestsUnknown is why more is not known of them; empty where all is.
	OldTestsUnknown string `json:"old_tests_unknown,omitempty"`
	// Tail has the last lines of Log; empty for a green check.
	Tail string `json:"tail,omitempty"`
	// Failing lists the failing tests of the red runs, FailingMore counts the omitted ones. Both
	// are empty for a green check. Fixed lists tests that failed before and pass now, by the
	// output.
	Failing     []FailingTest `json:"failing,omitempty"`
	FailingMore int           `json:"failing_more,omitempty"`
	Fixed       []string      `json:"fixed,omitempty"`
	// BeforePartial reports an incomplete list of earlier failures, so no failure is called new.
	BeforePartial bool `json:"before_partial,omitempty"`
	// Worse describes the deterioration of a check that was red before, if known.
	Worse string `json:"worse,omitempty"`
}

// MarshalJSON omits passed if the check neither ran on the change nor has a reason not to run: it
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
	File    string `json:"file,omitempty"` // as the output names it
	Line    int    `json:"line,omitempty"`
	Message string `json:"message,omitempty"`
	New     bool   `json:"new"` // it did not fail before
	// Runs lists the runs with this failure, from 1, if other red runs on the same files lack it.
	Runs []int `json:"runs,omitempty"`
}

// DescribeRuns describes the runs with this failure, or is empty if all red runs have it.
func (t FailingTest) DescribeRuns() string {
	if len(t.Runs) == 0 {
		return ""
	}
	var runs []string
	for _, n := range t.Runs {
		runs = append(runs, strconv.Itoa(n))
	}
	if len(runs) == 1 {
		return "only in run " + runs[0]
	}
	return "only in runs " + strings.Join(runs, ", ")
}

// Place returns the place of the failure, or "".
func (t FailingTest) Place() string {
	if t.File == "" || t.Line == 0 {
		return t.File
	}
	return fmt.Sprintf("%s:%d", t.File, t.Line)
}

// Tests describes the tests of a check: "2 new failures, 1 test fixed". It is empty without
// information.
func (r VerifyRow) Tests() string {
	fresh := 0
	for _, t := range r.Failing {
		if t.New {
			fresh++
		}
	}
	var parts []string
	if fresh > 0 {
		parts = append(parts, Count(fresh, "new failure"))
	}
	if rest := len(r.Failing) + r.FailingMore - fresh; rest > 0 && fresh > 0 {
		parts = append(parts, Count(rest, "other failure"))
	} else if rest > 0 {
		parts = append(parts, Count(rest, "failure"))
	}
	if len(r.Fixed) > 0 {
		parts = append(parts, Count(len(r.Fixed), "test")+" fixed")
	}
	if r.Worse != "" && fresh == 0 {
		parts = append(parts, r.Worse)
	}
	return strings.Join(parts, ", ")
}

// TestsAfter is Tests of a check that ran on the change. Otherwise it is empty, because the row has
// the base's tests.
func (r VerifyRow) TestsAfter() string {
	if r.After == "" {
		return ""
	}
	return r.Tests()
}

// CheckFailed is the Result of a check that missed the job's demand.
const CheckFailed = "failed"

// Result says in words how a check came out after the change.
func (r VerifyRow) Result() string {
	switch {
	case r.NotRun == NotConcerned:
		return "not concerned"
	case r.After == "":
		return "not run"
	case !r.Passed:
		return CheckFailed
	case CountsAsGreen(r.After, r.Flaky) && r.After == Flaky:
		return "flaky, accepted"
	case r.After != "green":
		return "failed before too"
	}
	return "passed"
}

type Change struct {
	TreeSHA    string           `json:"tree_sha"`
	Files      []changeset.File `json:"files"`
	Insertions int              `json:"insertions"`
	Deletions  int              `json:"deletions"`
	Patch      string           `json:"patch"` // path below the run directory
	// BaseSHA is the commit below the change, if the base moved.
	BaseSHA string `json:"base_sha,omitempty"`
	SHA256  string `json:"sha256"` // of the patch
	// Diff is the beginning of the patch for people, in whole lines, up to DiffBytes. DiffCut
	// reports a cut.
	Diff    string `json:"diff,omitempty"`
	DiffCut bool   `json:"diff_cut,omitempty"`
}

// DiffBytes bounds a patch in the transcript.
const DiffBytes = 200_000

// Lines are how many came and went.
func (c *Change) Lines() string {
	return fmt.Sprintf("+%s −%s", Thousands(int64(c.Insertions)), Thousands(int64(c.Deletions)))
}

// Size is how many files and lines it changes.
func (c *Change) Size() string { return Count(len(c.Files), "file") + ", " + c.Lines() }

// PublishBegun is the operation of a step about to be made. A resumed run recognises its own work
// by it.
const PublishBegun = "begun"

// Publish is a publishing step: commit, push or pull_request; or a post on an issue or pull
// request: review, labels or comment.
type Publish struct {
	Step      string `json:"step"`
	Branch    string `json:"branch,omitempty"`
	HeadSHA   string `json:"head_sha,omitempty"`
	Remote    string `json:"remote,omitempty"` // without credentials
	Number    int    `json:"number,omitempty"`
	URL       string `json:"url,omitempty"`
	Operation string `json:"operation,omitempty"` // created, updated, closed, none; begun before the call that is meant

	Labels   []string `json:"labels,omitempty"`   // that were added, or are to be
	Findings int      `json:"findings,omitempty"` // on lines of the diff
	Beside   int      `json:"beside,omitempty"`   // findings in the text of the review

	Of string `json:"of,omitempty"` // what is published beside the change: lessons; empty for the change
}

// OfLessons marks a publishing step of lessons in a separate pull request.
const OfLessons = "lessons"

// Warning is a remark for readers of the pull request.
type Warning struct {
	Code    string `json:"code"` // snake_case
	Message string `json:"message"`
}

// RunResumed reports that a killed or stopped run continues.
type RunResumed struct {
	Version string `json:"version"` // of agent-ci
	// Torn is the number of bytes removed from an incomplete last line.
	Torn int `json:"torn,omitempty"`
	// Undone reports a half applied patch that was undone.
	Undone bool `json:"undone,omitempty"`
	// Elsewhere reports that the work was restored: the last change, or the patches of a killed
	// run.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// After is how the run had ended, as outcome/reason; empty when it was
	// killed.
	After string `json:"after,omitempty"`
	// WorkTree is the work tree from here on, if changed.
	WorkTree string `json:"work_tree,omitempty"`
	// Limits lists changed limits as KEY=VALUE.
	Limits []string `json:"limits,omitempty"`
	// Seconds is how long the run had lived by then, also without events.
	Seconds float64 `json:"seconds,omitempty"`
}

type RunFinished struct {
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	ExitCode int    `json:"exit_code"`
	Summary  string `json:"summary,omitempty"` // the agent's last words
	Turns    int    `json:"turns"`
	Calls    int    `json:"calls"`                  // those that the API ran itself included
	Hosted   int    `json:"hosted_calls,omitempty"` // those
	Usage    Usage  `json:"usage"`
	// CostUSD is nil when no price is known.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Seconds float64  `json:"seconds"`
	// Files lists the files of the run directory, except the transcript and files made from it.
	Files   []FileDigest `json:"files,omitempty"`
	BaseSHA string       `json:"base_sha,omitempty"` // the commit that the change is on
	HeadSHA string       `json:"head_sha,omitempty"` // the commit of the change
	Branch  string       `json:"branch,omitempty"`   // of that commit
	Denied  int          `json:"denied,omitempty"`   // calls and hosts that the policy refused
	Output  string       `json:"output,omitempty"`   // file by task.output_schema, in the run directory
	Next    string       `json:"next,omitempty"`     // how to resume the run, for people; empty if it cannot be resumed
}

// FileDigest is a file of the run directory at the end of the run.
type FileDigest struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}
