package actions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

type Triggers struct {
	Labels       []string
	Assignees    []string
	Command      string // how a comment begins that asks; "" for none
	BranchPrefix string // of branches with reviews for agent-ci
}

// Request is the task in an event: an issue, a pull request to continue, or a prompt.
type Request struct {
	Trigger string // for people: "label agent-ci"
	// Actor is the requester. The run checks its permission. It is empty for a start by hand or
	// through the API, because GitHub has checked that permission already.
	Actor Account
	// RequestedAt is the time of the request: later texts do not count. The zero time means now.
	RequestedAt time.Time
	// Issue is the issue, or the pull request as an issue, as of the event. It is nil if the event
	// contains only its number.
	Issue      *Issue
	Number     int
	TypedIssue string // the issue as somebody typed it, where Number is to be read from that
	// Pull is the pull request to continue, with the fields of the event.
	Pull   *PullRequest
	OnPull bool
	// Words holds the actor's text beside the command. A request on a line of a diff sets On, the
	// comment.
	Words       string
	WordsID     int64
	LineComment *Comment
	Prompt      string
	Commanded   bool // in words: they may ask for more work on an existing result
	// Repair requests the repair of failed checks on a pull request. Without a number in the event,
	// SHA identifies it by its head. There is no Actor, because nobody requests this: the head
	// commit decides.
	Repair bool
	SHA    string
}

// Request returns e's request. Without a request it returns nil and the reason.
func (e *Event) Request(t Triggers) (*Request, string) {
	read, known := map[string]func(*Event, Triggers) (*Request, string){
		"issues":                      (*Event).issueRequest,
		"issue_comment":               (*Event).commentRequest,
		"pull_request_review":         (*Event).reviewRequest,
		"pull_request_review_comment": (*Event).lineCommentRequest,
		"workflow_dispatch":           (*Event).dispatchRequest,
		"repository_dispatch":         (*Event).dispatchRequest,
		"schedule":                    (*Event).scheduleRequest,
		"workflow_run":                (*Event).workflowRunRequest,
		"check_suite":                 (*Event).checkSuiteRequest,
	}[e.Name]
	if !known {
		return nil, fmt.Sprintf("the event %s has no task: give the job one", e.Name)
	}
	return read(e, t)
}

// issueRequest returns the request that a label or an assignment makes, or why it makes none.
func (e *Event) issueRequest(t Triggers) (*Request, string) {
	r := &Request{Actor: e.Sender, Issue: e.Issue}
	switch {
	case e.Issue == nil:
		return nil, "the event names no issue"
	case e.Action == "labeled" && e.Label != nil:
		r.Trigger = "label " + e.Label.Name
		if !containsFold(t.Labels, e.Label.Name) {
			return nil, fmt.Sprintf("the label %q is none of trigger.labels (%s)", e.Label.Name, strings.Join(t.Labels, ", "))
		}
	case e.Action == "assigned" && e.Assignee != nil:
		r.Trigger = "assignment to " + e.Assignee.Login
		if !containsFold(t.Assignees, e.Assignee.Login) {
			return nil, fmt.Sprintf("the assignee %s is none of trigger.assignees (%s)", e.Assignee.Login, strings.Join(t.Assignees, ", "))
		}
	default:
		return nil, fmt.Sprintf("an issue that was %s asks for nothing", e.Action)
	}
	r.Number, r.RequestedAt = e.Issue.Number, e.Issue.UpdatedAt
	return r, ""
}

// commentRequest returns the request in a new comment that starts with the command, or why there is none.
func (e *Event) commentRequest(t Triggers) (*Request, string) {
	if e.Action != "created" || e.Issue == nil || e.Comment == nil {
		return nil, fmt.Sprintf("a comment that was %s asks for nothing", e.Action)
	}
	words, found := cutCommand(e.Comment.Body, t.Command)
	if !found {
		return nil, fmt.Sprintf("the comment does not begin with %s", t.Command)
	}
	return &Request{
		Trigger: "comment", Actor: e.Comment.User, RequestedAt: e.Comment.CreatedAt, Issue: e.Issue, Number: e.Issue.Number,
		OnPull: e.Issue.IsPull(),
		Words:  words, WordsID: e.Comment.ID, Commanded: true,
	}, ""
}

// reviewRequest returns the request in a review that starts with the command, or why there is none. On a run's
// branch, a review that requests changes needs no command.
func (e *Event) reviewRequest(t Triggers) (*Request, string) {
	if e.Action != "submitted" || e.Review == nil || e.PullRequest == nil {
		return nil, fmt.Sprintf("a review that was %s asks for nothing", e.Action)
	}
	words, found := cutCommand(e.Review.Body, t.Command)
	isRunsBranch := strings.HasPrefix(e.PullRequest.Head.Ref, t.BranchPrefix)
	if !found && isRunsBranch && e.Review.State == "changes_requested" {
		words, found = e.Review.Body, true
	}
	if !found {
		return nil, fmt.Sprintf("the review neither begins with %s nor asks for changes of a branch below %s", t.Command, t.BranchPrefix)
	}
	return &Request{
		Trigger: "review", Actor: e.Review.User, RequestedAt: e.Review.SubmittedAt, Number: e.PullRequest.Number, Pull: e.PullRequest,
		OnPull: true, Words: words, WordsID: e.Review.ID, Commanded: true,
	}, ""
}

// lineCommentRequest returns the request in a new comment on a line of a diff, or why there is none.
func (e *Event) lineCommentRequest(t Triggers) (*Request, string) {
	if e.Action != "created" || e.Comment == nil || e.PullRequest == nil {
		return nil, fmt.Sprintf("a review comment that was %s asks for nothing", e.Action)
	}
	words, found := cutCommand(e.Comment.Body, t.Command)
	if !found {
		return nil, fmt.Sprintf("the review comment does not begin with %s", t.Command)
	}
	return &Request{
		Trigger: "review comment", Actor: e.Comment.User, RequestedAt: e.Comment.CreatedAt, Number: e.PullRequest.Number, Pull: e.PullRequest,
		OnPull: true, Words: words, WordsID: e.Comment.ID, LineComment: e.Comment, Commanded: true,
	}, ""
}

// dispatchInputs returns the inputs typed for workflow_dispatch, or the payload of repository_dispatch.
func (e *Event) dispatchInputs() map[string]any {
	if e.Name == "repository_dispatch" {
		return e.ClientPayload
	}
	return e.Inputs
}

// InputIssue returns the issue input of a dispatch event, as typed, or "".
func (e *Event) InputIssue() string { return strings.TrimSpace(inputText(e.dispatchInputs()["issue"])) }

// dispatchRequest returns the request in the input issue or prompt of a dispatch event, or why there is none.
func (e *Event) dispatchRequest(Triggers) (*Request, string) {
	r := &Request{Trigger: e.Name, TypedIssue: e.InputIssue(), Prompt: strings.TrimSpace(inputText(e.dispatchInputs()["prompt"]))}
	if hasIssue, hasPrompt := r.TypedIssue != "", r.Prompt != ""; hasIssue == hasPrompt {
		return nil, fmt.Sprintf("the event %s needs either issue or prompt; give it one of them, or give the job a task", e.Name)
	}
	return r, ""
}

func (e *Event) scheduleRequest(Triggers) (*Request, string) {
	return nil, "a schedule has no task: give the job one (task.prompt, task.prompt_file or task.issue)"
}

// redConclusions lists the conclusions of failed checks that a run may repair.
var redConclusions = []string{"failure", "timed_out", "startup_failure"}

// workflowRunRequest returns a request to repair the failed checks of a workflow run, or why there is none.
func (e *Event) workflowRunRequest(Triggers) (*Request, string) {
	run := e.WorkflowRun
	switch {
	case run == nil || e.Action != "completed":
		return nil, fmt.Sprintf("a run of a workflow that was %s asks for nothing", e.Action)
	case !slices.Contains(redConclusions, run.Conclusion):
		return nil, fmt.Sprintf("the run of the workflow ended as %q, and there is nothing to repair", run.Conclusion)
	}
	return RepairRequest("workflow run "+run.Name, 0, run.HeadSHA), ""
}

// checkSuiteRequest returns a request to repair the failed checks of a check suite, or why there is none.
func (e *Event) checkSuiteRequest(Triggers) (*Request, string) {
	suite := e.CheckSuite
	switch {
	case suite == nil || e.Action != "completed":
		return nil, fmt.Sprintf("a check suite that was %s asks for nothing", e.Action)
	case !slices.Contains(redConclusions, suite.Conclusion):
		return nil, fmt.Sprintf("the check suite ended as %q, and there is nothing to repair", suite.Conclusion)
	}
	return RepairRequest("check suite", 0, suite.HeadSHA), ""
}

// RepairRequest returns a request to repair failed checks on pull request number or, if it is 0, on
// the pull request with head sha.
func RepairRequest(trigger string, number int, sha string) *Request {
	return &Request{Trigger: trigger, Number: number, SHA: sha, OnPull: true, Repair: true, Commanded: true}
}

// inputText returns the text of an input. A number is formatted; other types are "".
func inputText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// cutCommand returns the words after the command called name at the start of body. found is false if body
// does not start with it, or if name is empty.
func cutCommand(body, name string) (words string, found bool) {
	rest, found := strings.CutPrefix(strings.TrimSpace(body), name)
	isLongerWord := rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n") // such as /agent-cimore
	if !found || name == "" || isLongerWord {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// containsFold compares as GitHub does with labels and logins: in any case.
func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool { return strings.EqualFold(entry, name) })
}
