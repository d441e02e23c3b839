package intake_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// server is a forge with what a test puts there. Calls that no test expects of
// intake meet the nil forge.Repository, and panic.
type server struct {
	forge.Forge
	viewer forge.User // nobody's for the token of an App
	acting string
	issues map[string]*forge.Issue
	pulls  map[int]*forge.PullRequest
	ofTask *forge.PullRequest // of the task's branch
	tip    *forge.Commit      // of any branch
	lines  []forge.ReviewComment
	roles  map[string]string
	fails  map[string]error // by call: "permission octocat"
	images map[string][]byte
	calls  []string
}

func (s *server) Repository(name string) forge.Repository { return &repository{server: s, name: name} }

func (s *server) Viewer(context.Context) (forge.User, error) {
	return s.viewer, s.call("viewer")
}

func (s *server) ActingAs(context.Context) (string, error) { return s.acting, s.call("acting as") }

// call notes a call, and fails where the test says so.
func (s *server) call(format string, args ...any) error {
	name := fmt.Sprintf(format, args...)
	s.calls = append(s.calls, name)
	return s.fails[name]
}

type repository struct {
	forge.Repository
	*server
	name string
}

func (r *repository) Name() string { return r.name }

func (r *repository) DefaultBranch(context.Context) (string, error) {
	return "main", r.call("default branch")
}

func (r *repository) Permission(_ context.Context, login string) (forge.Permission, error) {
	return forge.Permission{Level: "read", Role: r.roles[login]}, r.call("permission %s", login)
}

func (r *repository) Issue(_ context.Context, number int) (*forge.Issue, error) {
	ref := form.Issue{Repository: r.name, Number: number}.String()
	if err := r.call("issue %s", ref); err != nil {
		return nil, err
	}
	issue, found := r.issues[ref]
	if !found {
		return nil, &forge.Error{Kind: forge.NotFound, Message: "no issue"}
	}
	return issue, nil
}

func (r *repository) PullRequest(_ context.Context, number int) (*forge.PullRequest, error) {
	return r.pulls[number], r.call("pull %d", number)
}

func (r *repository) FindPullRequest(_ context.Context, head, base string) (*forge.PullRequest, error) {
	return r.ofTask, r.call("pull of %s into %s", head, base)
}

func (r *repository) Branch(_ context.Context, branch string) (*forge.Commit, error) {
	return r.tip, r.call("branch %s", branch)
}

func (r *repository) ReviewComments(context.Context, int) ([]forge.ReviewComment, error) {
	return r.lines, r.call("lines")
}

// Attachment is asked for side by side, and notes no call.
func (r *repository) Attachment(_ context.Context, address string) ([]byte, error) {
	if data, found := r.images[address]; found {
		return data, nil
	}
	return nil, errors.New("it is not there.")
}

// asked is when the task of a test was asked for.
var asked = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// inActions are the surroundings of a workflow of o/r.
var inActions = intake.Surroundings{InActions: true, Repository: "o/r", Server: "https://github.com", HasToken: true}

// trusting is a job that takes its task from events, and trusts who may write.
func trusting() *job.Job {
	return &job.Job{
		Task:    job.Task{From: "event"},
		Trigger: job.Trigger{Labels: []string{"agent-ci"}, Command: "/agent-ci"},
		Trust:   job.Trust{Roles: []string{"write"}, Bots: []string{"Helper[bot]"}, Comments: "trusted"},
	}
}

// eventOf is an event of Actions; "" as a name for none.
func eventOf(t *testing.T, name, payload string) intake.Event {
	t.Helper()
	from := inActions
	if name != "" {
		from.EventName, from.EventPath = name, filepath.Join(t.TempDir(), "event.json")
		must.Do(t, os.WriteFile(from.EventPath, []byte(payload), 0o600))
	}
	return intake.ReadEvent(t.Context(), from)
}

// sourceOf is where a job's task comes from, by an event.
func sourceOf(t *testing.T, on *server, j *job.Job, name, payload string) *intake.Source {
	t.Helper()
	e := eventOf(t, name, payload)
	request := must.Get(e.Request(j))(t)
	return &intake.Source{
		Event: e, Request: request, Job: j, Forge: on, Target: on.Repository("o/r"), Permissions: intake.PermissionCache{}, Record: record.New("", nil), Publishes: true,
		JobFiles: &besideJob{job: j},
	}
}

// besideJob has the job's prompt, and images beside it: other names are of a file that is too large.
type besideJob struct {
	job    *job.Job
	unread error // of the prompt
	images map[string]error
	image  []byte
}

func (b *besideJob) ReadPrompt(context.Context) (string, error) { return b.job.Task.Prompt, b.unread }

func (b *besideJob) ReadBesideJob(_ context.Context, name string, limit int64) ([]byte, error) {
	err, found := b.images[name]
	if !found {
		return make([]byte, limit+1), nil
	}
	return b.image, err
}

// codesOf are the codes of warnings.
func codesOf(warnings []transcript.Warning) []string {
	var codes []string
	for _, w := range warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// Payloads of events on issue 7, on pull request 9 of a run, and on 8 of a person.
const (
	octocat = `"sender": {"login": "octocat", "id": 1, "type": "User"}`
	issue7  = `"issue": {"number": 7, "title": "Greet", "body": "Say hello.", "updated_at": "2026-01-02T03:04:05Z"}`
	labeled = `{"action": "labeled", "label": {"name": "agent-ci"}, ` + issue7 + `, ` + octocat + `}`
	ordered = `{"action": "created", "issue": {"number": 7, "title": "Greet", "body": "Say hello."}, "comment": {"id": 3, "body": "/agent-ci and be polite", "created_at": "2026-01-02T03:04:05Z", "user": {"login": "octocat", "id": 1}}, ` + octocat + `}`
)

// onPull is a comment with the command on a pull request.
func onPull(number int, words string) string {
	return fmt.Sprintf(`{"action": "created", "issue": {"number": %d, "title": "Polish", "body": "As it was.", "pull_request": {}},
		"comment": {"id": 3, "body": "/agent-ci %s", "created_at": "2026-01-02T03:04:05Z", "user": {"login": "octocat", "id": 1}}, %s}`, number, words, octocat)
}

// read returns the task of a source.
func read(t *testing.T, s *intake.Source, pull *forge.PullRequest) intake.Task {
	t.Helper()
	return must.Get(s.Read(t.Context(), pull))(t)
}
