package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools/question"
)

// past is a run that was killed or stopped, as its transcript tells it.
type past struct {
	agent     agent.Past
	started   *transcript.RunStarted
	job       job.Job
	limits    job.Limits // when it was stopped
	task      transcript.Task
	workspace *transcript.Workspace
	plan      transcript.Plan
	warnings  []transcript.Warning
	baseline  *transcript.Verify
	table     *transcript.Verify      // the last one of change, else of the base
	attempts  int                     // of verification, before the last answer
	commit    string                  // that was made of the change
	step      string                  // of publishing that was done last
	answered  bool                    // the last request was
	spoke     bool                    // and the answer called no tool
	done      bool                    // and then what the agent had changed was kept
	asked     []question.Question     // that the agent put to people
	change    *transcript.Change      // the last one on the base that the work began on
	moved     bool                    // the change followed its base after that
	finished  *transcript.RunFinished // nil when it was killed
	pending   bool                    // the run went on and ended before its work was in the checkout
	elapsed   time.Duration           // while the run lived
	first     time.Time               // event since it was started or resumed
	verified  int                     // the last attempt
	nudged    bool                    // an early end was pointed out
}

// readPast folds the events of the run directory.
func (r *run) readPast() (*past, error) {
	f, err := r.dir.open(transcriptFile)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	p := &past{}
	last := time.Time{}
	for e, err := range transcript.Read(f) {
		if torn := (*transcript.TornError)(nil); errors.As(err, &torn) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read transcript: %w", err)
		}
		if e.Type == transcript.TypeRunResumed || p.first.IsZero() {
			p.elapsed += last.Sub(p.first)
			p.first = e.Time
		}
		last = e.Time
		if err := p.take(e); err != nil {
			return nil, fmt.Errorf("read transcript event %d: %w", e.Seq, err)
		}
	}
	if alive := r.dir.lastAlive(); alive.After(last) && alive.Before(time.Now()) && p.finished == nil {
		last = alive
	}
	p.elapsed += last.Sub(p.first)
	return p, nil
}

func (p *past) take(e transcript.Event) error {
	switch e.Type {
	case transcript.TypeRunStarted:
		p.started = &transcript.RunStarted{}
		if err := json.Unmarshal(e.Data, p.started); err != nil {
			return err
		}
		err := json.Unmarshal(p.started.Job, &p.job)
		p.agent.CallLimit = p.job.Limits.ToolCalls
		return err
	case transcript.TypeRunResumed:
		return p.resume(e.Data)
	case transcript.TypeChange:
		return p.changed(e.Data)
	case transcript.TypeTask:
		return json.Unmarshal(e.Data, &p.task)
	case transcript.TypeWorkspace:
		p.workspace = &transcript.Workspace{}
		return json.Unmarshal(e.Data, p.workspace)
	case transcript.TypePlan:
		p.plan = transcript.Plan{}
		return json.Unmarshal(e.Data, &p.plan)
	case transcript.TypeWarning:
		var w transcript.Warning
		err := json.Unmarshal(e.Data, &w)
		p.warnings = append(p.warnings, w)
		return err
	case transcript.TypeVerify:
		return p.verify(e.Data)
	case transcript.TypePublish:
		return p.publish(e.Data)
	case transcript.TypeRunFinished:
		p.finished = &transcript.RunFinished{}
		if err := json.Unmarshal(e.Data, p.finished); err != nil {
			return err
		}
	case transcript.TypeToolStarted:
		p.spoke = false
	case transcript.TypeModelRequest:
		p.spoke, p.answered, p.done, p.step = true, false, false, ""
		p.nudged = p.nudged || bytes.Contains(e.Data, []byte(`"text":"`+nudgeWords)) // words in a text have their quotes escaped
	case transcript.TypeModelResponse:
		p.attempts, p.answered = p.verified, true
	case transcript.TypeToolFinished:
		if err := p.heard(e.Data); err != nil {
			return err
		}
	}
	return p.agent.Take(e)
}

// resume takes it that the run went on after an end.
func (p *past) resume(raw json.RawMessage) error {
	p.finished = nil
	var resumed transcript.RunResumed
	if err := json.Unmarshal(raw, &resumed); err != nil {
		return err
	}
	if lived := time.Duration(resumed.Seconds * float64(time.Second)); lived > p.elapsed {
		p.elapsed = lived
	}
	limits, err := setLimits(p.job.Limits, resumed.Limits)
	p.job.Limits, p.agent.CallLimit = limits, limits.ToolCalls
	return err
}

// changed leaves out a change that followed its base: it does so anew.
func (p *past) changed(raw json.RawMessage) error {
	var change transcript.Change
	if err := json.Unmarshal(raw, &change); err != nil {
		return err
	}
	p.done = p.answered && p.spoke
	if p.moved = change.BaseSHA != ""; !p.moved {
		p.change = &change
	}
	return nil
}

// heard takes the questions of a call that put them to people.
func (p *past) heard(raw json.RawMessage) error {
	var call struct {
		Tool   string
		Failed bool
		Detail struct{ Questions json.RawMessage }
	}
	if err := json.Unmarshal(raw, &call); err != nil || call.Failed || call.Tool != questionTool || call.Detail.Questions == nil {
		return err
	}
	var questions []question.Question
	err := json.Unmarshal(call.Detail.Questions, &questions)
	p.asked = append(p.asked, questions...)
	return err
}

func (p *past) verify(raw json.RawMessage) error {
	var v transcript.Verify
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if v.Attempt == 0 {
		p.baseline = &v
	}
	if p.verified = v.Attempt; !p.moved {
		p.table = &v
	}
	return nil
}

func (p *past) publish(raw json.RawMessage) error {
	var step transcript.Publish
	if err := json.Unmarshal(raw, &step); err != nil {
		return err
	}
	if p.step = step.Step; p.step == "commit" {
		p.commit = step.HeadSHA
	}
	return nil
}

// worked says that the agent had begun.
func (p *past) worked() bool { return p.agent.Turns() > 0 }

// onPull says that the run goes on with a pull request, whose change was in the
// checkout before the agent began.
func (p *past) onPull() bool {
	return p.task.Source == "event" && strings.Contains(p.task.URL, "/pull/")
}

// askedOn is the number of the issue or pull request on which an event asked for
// the run; 0 for none.
func (p *past) askedOn() int {
	if p.task.Trigger == "" {
		return 0
	}
	if p.onPull() {
		number, _ := strconv.Atoi(path.Base(p.task.URL)) // else it is 0
		return number
	}
	issue, err := job.ParseIssue(p.task.Issue)
	if err != nil {
		return 0
	}
	return issue.Number
}
