package assembly

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/question"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// secret is what the record of a site removes.
const secret = "hunter2hunter2"

// site has what an agent needs: a checkout with these files in its one commit, and
// commands that nothing confines.
func site(t *testing.T, j *job.Job, files map[string]string) Options {
	t.Helper()
	repo := gittest.New(t)
	repo.WriteAll(files)
	repo.Commit("First.")
	rec := recordtest.New(t, "run-1", secrets.Value{Name: "TOKEN", Secret: secret})
	space := must.Get(workspace.Open(t.Context(), rec, workspace.Options{Dir: repo.Dir, Path: os.Getenv("PATH")}))(t)
	t.Cleanup(func() { space.Close() })
	must.Do(t, space.StartOn(t.Context(), ""))
	j.Policy.Sandbox, j.Policy.Network = "danger-full-access", job.Network{Mode: "full"}
	boxes := &confine.Sandboxes{Control: egress.Control{Record: rec, Environ: os.Environ(), Job: j}, Root: space.Root(), Checkout: space}
	must.Do(t, boxes.SettleConfinement(t.Context()))
	must.Do(t, errors.Join(space.UseTree(t.Context(), boxes.WorkTree()), space.TakeSnapshot(t.Context())))
	return Options{Shared: Shared{Record: rec, Workspace: space, Sandboxes: boxes}, Job: j}
}

// briefed is an agent with these turns of a scripted session as its model, that was
// told its task.
func briefed(t *testing.T, o Options, turns string) *Agent {
	t.Helper()
	if o.Job.Model.Name == "" {
		o.Job.Model = job.Model{Name: "gpt-5", Tools: "auto"}
	}
	var err error
	if o.Model, err = provider.Scripted(t.Context(), modeltest.Session(t, "version: 1\nturns:\n"+turns), 0, o.Job); err != nil {
		t.Fatal(err)
	}
	a := must.Get(New(t.Context(), o))(t)
	t.Cleanup(a.endProcesses)
	must.Do(t, a.Brief(briefing.Briefing{Task: briefing.Task{Source: "prompt", Text: "Mend it."}}, nil))
	return a
}

// ran is what came of an agent that ends without an error.
func ran(t *testing.T, a *Agent) Work {
	t.Helper()
	return must.Get(a.Run(t.Context()))(t)
}

func TestCreatesAgentWithoutTools(t *testing.T) {
	o := site(t, &job.Job{Repository: job.Repository{Path: "missing"}}, nil)
	a := briefed(t, o, "  - output: [{say: unused}]\n")
	must.Same(t, false, o.Record.Has(confine.ProgramsFolder+"/apply_patch"), "a program is linked")
	work, err := a.Run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "open the working directory: ") || work.Spent.Turns != 0 {
		t.Errorf("%+v, err = %v", work, err)
	}
}

// fakeTeam is a team without subagents. It calls the function when it begins.
type fakeTeam func()

func (f fakeTeam) Begin(context.Context)                    { f() }
func (fakeTeam) Tools() []tools.Tool                        { return nil }
func (fakeTeam) Used() agent.Used                           { return agent.Used{} }
func (fakeTeam) TakeNews() []string                         { return nil }
func (fakeTeam) Settle(context.Context, bool) (bool, error) { return false, nil }
func (fakeTeam) End()                                       {}

func TestTeamBeginsWhenToolsAreMade(t *testing.T) {
	var a *Agent
	o := site(t, &job.Job{}, nil)
	o.Team = fakeTeam(func() { must.Same(t, true, a.toolbox != nil, "a subagent that starts finds the tools of its starter") })
	a = briefed(t, o, "  - output: [{say: Done.}]\n")
	ran(t, a)
}

func TestQuestionsEarlyEndOnce(t *testing.T) {
	a := briefed(t, site(t, &job.Job{Task: job.Task{Expects: "change"}}, nil), `
  - output: [{say: Done.}]
  - expect: ["You ended, but nothing in the checkout has changed"]
    output: [{say: Nothing needs to change.}]
  - output: [{say: unused}]
`)
	for _, want := range []bool{true, false} {
		ran(t, a)
		if nudged, err := a.QuestionEnd(true, ""); nudged != want || err != nil {
			t.Errorf("nudged: %t, %v; want %t", nudged, err, want)
		}
	}
	must.Same(t, "Nothing needs to change.", a.Work().Summary)
}

func TestSendsQuestionsToPeople(t *testing.T) {
	const asking = `
  - output: [{call: request_user_input, arguments: {questions: [{question: "Which?"}]}}]
  - output: [{call: request_user_input, arguments: {questions: [{question: "When?"}]}}]
  - output: [{say: I asked.}]
`
	which, when := question.Question{Question: "Which?"}, question.Question{Question: "When?"}
	ask := job.Task{Questions: "ask"}
	for name, test := range map[string]struct {
		task   job.Task
		people []error // what comes of putting questions to them; nil where there are none
		want   []question.Question
		warned bool
	}{
		"all are put to them":       {ask, []error{nil, nil}, []question.Question{which, when}, false},
		"some do not reach them":    {ask, []error{errors.New("gone"), nil}, []question.Question{when}, false},
		"nobody is there":           {ask, nil, nil, true},
		"nobody is to be asked":     {job.Task{Questions: "assume"}, nil, nil, false},
		"they are there, and asked": {job.Task{}, []error{nil, nil}, []question.Question{which, when}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := site(t, &job.Job{Task: test.task}, nil)
			if results := test.people; results != nil {
				o.Ask = func(context.Context, []question.Question) error {
					err := results[0]
					results = results[1:]
					return err
				}
			}
			work := ran(t, briefed(t, o, asking))
			must.Same(t, test.want, work.Questions)
			if asked := AskedPeople(o.Job, o.Record.Warnings()); test.task.Questions == "ask" && asked == test.warned {
				t.Errorf("it asked people: %t, by the warnings %+v", asked, o.Record.Warnings())
			}
		})
	}
}

// stopped is an agent as the transcript of its run tells of it.
func stopped(t *testing.T, rec *record.Record) *ResumeState {
	t.Helper()
	var p ResumeState
	must.Get(rec.FoldEvents(func(_ *transcript.View, e transcript.Event) error { return p.Apply(e) }))(t)
	return &p
}

func TestResumesAgent(t *testing.T) {
	o := site(t, &job.Job{Task: job.Task{Expects: "change"}}, nil)
	a := briefed(t, o, `
  - output: [{say: Done.}]
  - fail: {status: 401, message: no}
`)
	ran(t, a)
	if nudged, err := a.QuestionEnd(true, ""); !nudged || err != nil {
		t.Fatalf("nudged: %t, %v", nudged, err)
	}
	must.Fail(t, "", must.Err(a.Run(t.Context())), "it worked")
	b := briefed(t, o, `
  - expect: ["The run was stopped, and goes on now.", "put into a fresh checkout", "Look at the checkout before you go on."]
    output: [{say: Done again.}]
  - output: [{say: unused}]
`)
	must.Do(t, b.Resume(StoppedAgent{
		State: stopped(t, o.Record), Plan: transcript.Plan{Explanation: "Why."}, ModelUse: []transcript.ModelUse{{Usage: transcript.Usage{Input: 7}}}, Ended: true,
		WorkPlace: workspace.InChange,
	}))
	work := ran(t, b)
	if work.Summary != "Done again." || work.Plan.Explanation != "Why." || work.Spent.Turns != 3 || work.Spent.Usage.Input != 7 {
		t.Errorf("%+v", work)
	}
	if nudged, err := b.QuestionEnd(true, ""); nudged || err != nil {
		t.Errorf("nudged again: %t, %v", nudged, err)
	}
}

func TestResumeKeepsEndedAgentSilent(t *testing.T) {
	o := site(t, &job.Job{}, nil)
	ran(t, briefed(t, o, "  - output: [{say: Done.}]\n"))
	b := briefed(t, o, `
  - expect: ["Mend more."]
    output: [{say: Done again.}]
`)
	must.Do(t, b.Resume(StoppedAgent{State: stopped(t, o.Record), Ended: true}))
	if work := ran(t, b); work.Summary != "Done." || work.Spent.Turns != 1 {
		t.Errorf("%+v", work)
	}
	must.Do(t, b.Tell("Mend more."))
	if work := ran(t, b); work.Summary != "Done again." || work.Spent.Turns != 2 {
		t.Errorf("after more was wanted: %+v", work)
	}
}

func TestResumeKeepsBriefing(t *testing.T) {
	o := site(t, &job.Job{}, nil)
	a := briefed(t, o, `
  - expect: ["Mend it.", "The run was stopped, and goes on now."]
    output: [{say: Done.}]
`)
	must.Do(t, a.Resume(StoppedAgent{State: new(ResumeState), Ended: true}))
	must.Same(t, "Done.", ran(t, a).Summary)
}

func TestOutputHidesSecrets(t *testing.T) {
	schema := must.Get(settings.ParseOutputSchema([]byte(`{"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}`)))(t)
	o := site(t, &job.Job{}, nil)
	must.Get(briefed(t, o, "  - output: [{say: '{\"n\": \""+secret+"\"}'}]\n").Output(t.Context(), schema))(t)
	if raw, _ := o.Record.Read(OutputFile); string(raw) != `{"n":"[secret TOKEN]"}`+"\n" {
		t.Errorf("it wrote %q", raw)
	}
}
