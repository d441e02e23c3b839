package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

const Version = 1

// Event is one line of transcript.jsonl. Field order is the order on the line.
type Event struct {
	V     int             `json:"v"`
	Seq   int64           `json:"seq"`  // from 1, without gaps
	Time  time.Time       `json:"time"` // RFC 3339 with nanoseconds, UTC
	Agent string          `json:"agent"`
	Type  Type            `json:"type"`
	Data  json.RawMessage `json:"data"`
	// Prev is the SHA-256 in hex of the line before, without its newline; 64
	// zeros in the first event.
	Prev string `json:"prev"`
}

// By is the agent of the event; empty for the one of the run.
func (e Event) By() string {
	if e.Agent == MainAgent {
		return ""
	}
	return e.Agent
}

// Type names what an event tells. Types may be added; readers keep and skip
// those that they don't know.
type Type string

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
	TypePublish       Type = "publish"        // Publish
	TypeMemory        Type = "memory"         // Memory
	TypeLesson        Type = "lesson"         // Lesson
	TypeLessons       Type = "lessons"        // Lessons
	TypeWarning       Type = "warning"        // Warning
	TypeRunResumed    Type = "run.resumed"    // RunResumed
	TypeRunFinished   Type = "run.finished"   // RunFinished
)

// RunStarted is the first event: what runs, and under which settings.
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
	// Scripted names the scripted session that stands in for the model; empty
	// when a model is asked.
	Scripted string `json:"scripted,omitempty"`
	// OutputSchema is what task.output_schema names.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Link         string          `json:"link,omitempty"` // page of the CI run
	// Artifacts is the page where the files of the run are to be had that the action
	// uploads at its end; empty where it uploads none.
	Artifacts string `json:"artifacts,omitempty"`
}

// Task is what was asked, as it goes to the model.
type Task struct {
	Source string `json:"source"` // prompt, issue, job, event
	Title  string `json:"title,omitempty"`
	Text   string `json:"text"`
	// Request are the words of Text that ask for more on a pull request of a run; empty
	// for a task that goes on with none.
	Request string `json:"request,omitempty"`
	Issue   string `json:"issue,omitempty"` // OWNER/REPO#N
	URL     string `json:"url,omitempty"`
	SHA256  string `json:"sha256"` // of Text
	// Snapshot is the SHA-256 of what people wrote for the task, as it was when
	// it was asked for, before anything was removed from it.
	Snapshot string `json:"snapshot,omitempty"`
	Trigger  string `json:"trigger,omitempty"` // of an event: "label agent-ci"
	Actor    string `json:"actor,omitempty"`   // the account that asked
	ActorID  int64  `json:"actor_id,omitempty"`
	// Author and AuthorID are the account that wrote the issue; not of a bot.
	Author   string `json:"author,omitempty"`
	AuthorID int64  `json:"author_id,omitempty"`
	// Subject is what something is to be said on; nil for a task that makes a change.
	Subject *Subject `json:"subject,omitempty"`
	// Repair is what a run mends of a run's own pull request; nil for another task.
	Repair *Repair `json:"repair,omitempty"`
}

// Repair is an attempt to mend red checks of a pull request.
type Repair struct {
	HeadSHA  string  `json:"head_sha"` // the commit of the pull request that they are red on
	Attempt  int     `json:"attempt"`
	SpentUSD float64 `json:"spent_usd"` // by attempts before this one
}

// Subject is an issue or pull request that a run says something on.
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
	// NoOverlay says why they work in the checkout itself though the job lets them work in
	// an overlay of it; empty where neither is so.
	NoOverlay string `json:"no_overlay,omitempty"`
	// Seen is the path at which commands find the work tree; empty for that of the checkout.
	Seen string `json:"seen,omitempty"`
}

func (p Policy) Unconfined() bool { return p.Level == "none" }

// WorkTreeWords say what commands work in, and why in no overlay; empty where that is
// not recorded.
func (p Policy) WorkTreeWords() string {
	if p.NoOverlay == "" {
		return p.WorkTree
	}
	return p.WorkTree + " (no overlay: " + p.NoOverlay + ")"
}

// Setup is one setup command, after it ran, or another command of the job that runs before the agent.
type Setup struct {
	Kind     string  `json:"kind,omitempty"` // applies_if, recipe; empty for a setup command
	Name     string  `json:"name"`
	Run      string  `json:"run"`
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"seconds"`
	Log      string  `json:"log"`            // path below the run directory
	Tail     string  `json:"tail,omitempty"` // its last lines, of a command that failed
}

// Network is a host that commands asked the proxy for, and what became of it. It
// is told once for each that differs.
type Network struct {
	By       string `json:"by"`       // the sandbox: agent, setup, verify-N
	Target   string `json:"target"`   // host and port; as it was asked for where that can't be read
	Protocol string `json:"protocol"` // http, https
	Allowed  bool   `json:"allowed"`
	Rule     string `json:"rule,omitempty"` // that decided; empty where none is for it
	Reason   string `json:"reason"`
	// Request is of a refusal for a secret the first request that came to it: method and
	// path, of at most RequestBytes.
	Request string `json:"request,omitempty"`
	// Remedy is what a person can do to have it let through, the end of a sentence; empty
	// where nothing does.
	Remedy string `json:"remedy,omitempty"`
	Via    string `json:"via,omitempty"` // host and port of the machine's proxy that it is reached by
}

// RequestBytes is the most of a request that stands in the transcript.
const RequestBytes = 100

// Service is what became of a service that a sandbox reaches.
type Service struct {
	Name  string `json:"name"`
	By    string `json:"by"`           // the sandbox: agent, setup, verify-N
	State string `json:"state"`        // ready, not_ready, init_failed, ended
	Port  int    `json:"port"`         // at which commands find it
	At    string `json:"at,omitempty"` // the address of one that runs already
	Why   string `json:"why,omitempty"`
	// ExitCode is of a service that has ended.
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

// ModelRequest holds only what is new in a request, and the digest of all of it.
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

// ModelResponse is what came back, each item as the API sent it.
type ModelResponse struct {
	Turn    int               `json:"turn"`
	ID      string            `json:"id,omitempty"`
	Status  string            `json:"status"` // completed; incomplete when it broke off and this is what stays of it
	Output  []json.RawMessage `json:"output"`
	Usage   Usage             `json:"usage"`
	Seconds float64           `json:"seconds"`
	// Aside says that the runner asked for something of its own: a summary of
	// the conversation, or the output that the job wants.
	Aside bool `json:"aside,omitempty"`
}

// Incomplete is the status of an answer that broke off.
const Incomplete = "incomplete"

// Usage counts tokens.
type Usage = price.Usage

// ModelRetry says that a request failed and will be sent again, or that the
// next one goes on behind the calls of its answer that had started.
type ModelRetry struct {
	Turn    int     `json:"turn"`
	Attempt int     `json:"attempt"`
	Error   string  `json:"error"`
	Wait    float64 `json:"wait_seconds"`
	Data    string  `json:"data,omitempty"`  // the beginning of what could not be read
	Usage   *Usage  `json:"usage,omitempty"` // of the answer that failed
}

// ModelFailure says that a request failed for good.
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

// ModelFallback says that another model goes on with the run.
type ModelFallback struct {
	Turn   int    `json:"turn"` // the last one before
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"` // kind of the failure
	Why    string `json:"why"`    // its words
	// LeftOut are the places in the conversation, from 0, of items that the other model
	// can't read: it goes on without them.
	LeftOut []int       `json:"left_out,omitempty"`
	Price   *price.List `json:"price,omitempty"` // of the other model; missing when it is not known
}

// Refused is the reason of a compaction that took out, or renamed, what the API refused.
const Refused = "refused"

// Compaction says that the conversation was made shorter, or repaired. Items stand for all
// inputs and outputs before.
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
	Ready   string `json:"ready,omitempty"`   // the arguments as the tool takes them, where these are others
	Refused bool   `json:"refused,omitempty"` // it was not to be run, and no hook was asked
	Written bool   `json:"written,omitempty"` // it stands in the words of the answer
	Agent   string `json:"-"`                 // that made the call, by the event; empty for the one of the run
}

// Shown is the input of a call for a reader of the run: empty where it is text that stands in the
// words of the answer as it is.
func (t ToolStarted) Shown() string {
	if t.Written && !json.Valid([]byte(t.Input)) {
		return ""
	}
	return t.Input
}

// CameOf begins the message by which a model that writes is told what came of its answer.
const CameOf = "What came of your last answer, from the runner."

// ToolFinished is the end of a call; each started call has one.
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
	Agent     string         `json:"-"`                 // that made the call, by the event; empty for the one of the run
	Object    any            `json:"object,omitempty"`  // what a script got in the place of Output, of a tool from outside
}

// CallRef tells a call from the others of its run.
type CallRef struct {
	Number int    `json:"number"`
	Caller int    `json:"caller,omitempty"`
	Agent  string `json:"agent,omitempty"` // that made it; empty for the run's own
}

// By is the call as one of the agent of an event.
func (r CallRef) By(agent string) CallRef {
	if r.Agent = agent; agent == MainAgent {
		r.Agent = ""
	}
	return r
}

// String is the number of a call; behind that of its script's call, where a script made it, and
// behind its agent, where that is not the run's own.
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

// Ref is which call it is.
func (d ToolStarted) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

// Ref is which call it is.
func (d ToolFinished) Ref() CallRef { return CallRef{d.Number, d.Caller, d.Agent} }

type Plan struct {
	Explanation string     `json:"explanation,omitempty"`
	Steps       []PlanStep `json:"steps"`
}

type PlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed
}

// Done counts the steps that are done.
func (p Plan) Done() (n int) {
	for _, step := range p.Steps {
		if step.Status == "completed" {
			n++
		}
	}
	return n
}

// Current returns the index of the step that is in progress, or else of the first step that is not done; -1
// if all are done.
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

// VerifyRow is one verify command. Before and After are "green", "red",
// "timeout", "flaky" or empty for not run. Log and Seconds are those of the run that
// decided: see Deciding.
type VerifyRow struct {
	Name    string  `json:"name"`
	Run     string  `json:"run"`
	Must    string  `json:"must"`
	Before  string  `json:"before"`
	After   string  `json:"after"`
	Passed  bool    `json:"passed"` // missing in JSON where the check did not come to the change
	Seconds float64 `json:"seconds"`
	Log     string  `json:"log,omitempty"` // below the run directory
	// Flaky is "accept" where flaky counts as green; else it counts as red.
	Flaky string `json:"flaky,omitempty"`
	// NotRun says why the check was not run: "when" where the change touches nothing of
	// its.
	NotRun string     `json:"not_run,omitempty"`
	Runs   []CheckRun `json:"runs,omitempty"` // on the tree of this table, as they came
	// From is the run that took the baseline, where it was kept; empty for this run.
	From string `json:"from,omitempty"`
	// Proof has the classes of the test files of the change, by a check that proves them;
	// ProofMore is how many more there are.
	Proof     []Proof `json:"proof,omitempty"`
	ProofMore int     `json:"proof_more,omitempty"`
	// OldTests are the tests of the base that the change took away or that fail on it.
	OldTests []OldTest `json:"old_tests,omitempty"`
	// OldTestsUnknown is why more is not known of them; empty where all is.
	OldTestsUnknown string `json:"old_tests_unknown,omitempty"`
	// Tail has the last lines of Log; empty for a check that is green.
	Tail string `json:"tail,omitempty"`
	// Failing are the tests that fail by the red runs, and FailingMore how many
	// there are beyond those; of a check that is green there are none. Fixed are those
	// that failed before and pass now, as the output tells.
	Failing     []FailingTest `json:"failing,omitempty"`
	FailingMore int           `json:"failing_more,omitempty"`
	Fixed       []string      `json:"fixed,omitempty"`
	// BeforePartial says that more tests may have failed before than were told, so that
	// none that fails now is called new.
	BeforePartial bool `json:"before_partial,omitempty"`
	// Worse says in what a check that was red before is worse with the change; empty for
	// nothing that is known.
	Worse string `json:"worse,omitempty"`
}

// MarshalJSON leaves out passed where the check neither ran on the change nor had to: it did not fail.
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

// FailingTest is a test that fails, as the output of a check tells.
type FailingTest struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"` // as the output names it
	Line    int    `json:"line,omitempty"`
	Message string `json:"message,omitempty"`
	New     bool   `json:"new"` // it did not fail before
	// Runs are those that name it, from 1, where other red runs of the check on the same files
	// do not.
	Runs []int `json:"runs,omitempty"`
}

// Only says in words which runs name the test, where not all red ones do; else it is empty.
func (t FailingTest) Only() string {
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

// Place is where the test says that it failed; empty where it doesn't.
func (t FailingTest) Place() string {
	if t.File == "" || t.Line == 0 {
		return t.File
	}
	return fmt.Sprintf("%s:%d", t.File, t.Line)
}

// Tests says in words what became of the tests of a check: "2 new failures, 1 test fixed";
// empty where nothing is known of any.
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

// TestsAfter is Tests of a check that ran on the change. It is empty for one that did not:
// what its row has are the tests of the base.
func (r VerifyRow) TestsAfter() string {
	if r.After == "" {
		return ""
	}
	return r.Tests()
}

// CheckFailed is the Result of a check that did not come out as its job demands.
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
	case Good(r.After, r.Flaky) && r.After == Flaky:
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
	// BaseSHA is the commit that the change is on, where that is not the one of
	// the workspace: the base moved.
	BaseSHA string `json:"base_sha,omitempty"`
	SHA256  string `json:"sha256"` // of the patch
	// Diff is the beginning of the patch, in whole lines, for people: of at most DiffBytes.
	// The end is left out where DiffCut is set.
	Diff    string `json:"diff,omitempty"`
	DiffCut bool   `json:"diff_cut,omitempty"`
}

// DiffBytes is the most of a patch that stands in the transcript.
const DiffBytes = 200_000

// Lines are how many came and went.
func (c *Change) Lines() string {
	return fmt.Sprintf("+%s −%s", Thousands(int64(c.Insertions)), Thousands(int64(c.Deletions)))
}

// Size is how many files and lines it changes.
func (c *Change) Size() string { return Count(len(c.Files), "file") + ", " + c.Lines() }

// PublishBegun is the operation of a step that is about to be made: a run that is killed
// within it knows by that what is its own.
const PublishBegun = "begun"

// Publish is one step of publishing: commit, push or pull_request; or what was said on
// an issue or pull request: review, labels or comment.
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

// OfLessons says of a step of publishing that it is of lessons in a pull request of their own.
const OfLessons = "lessons"

// Warning is something that a reader of the pull request should know.
type Warning struct {
	Code    string `json:"code"` // snake_case
	Message string `json:"message"`
}

// RunResumed says that a run which was killed or stopped goes on.
type RunResumed struct {
	Version string `json:"version"` // of agent-ci
	// Torn is how many bytes of a last line that was not whole were cut off.
	Torn int `json:"torn,omitempty"`
	// Undone says that a patch which was half applied was taken back.
	Undone bool `json:"undone,omitempty"`
	// Elsewhere says that the work did not stand in the checkout and was put
	// into it again: the last change, or the patches of a run that was killed.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// After is how the run had ended, as outcome/reason; empty when it was
	// killed.
	After string `json:"after,omitempty"`
	// WorkTree is what commands work in from here on, where that is not as before.
	WorkTree string `json:"work_tree,omitempty"`
	// Limits are those that are not as before, as KEY=VALUE.
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
	// Files are those of the run directory, but for the transcript and what is
	// made of it.
	Files   []FileDigest `json:"files,omitempty"`
	BaseSHA string       `json:"base_sha,omitempty"` // the commit that the change is on
	HeadSHA string       `json:"head_sha,omitempty"` // the commit of the change
	Branch  string       `json:"branch,omitempty"`   // of that commit
	Denied  int          `json:"denied,omitempty"`   // calls and hosts that the policy refused
	Output  string       `json:"output,omitempty"`   // file by task.output_schema, in the run directory
	Next    string       `json:"next,omitempty"`     // how to resume the run, for people; empty if it cannot be resumed
}

// FileDigest is a file of the run directory as it was at the end of the run.
type FileDigest struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}
