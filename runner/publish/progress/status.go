package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// status is the run's current activity, for the status line.
type status struct {
	phase             record.Phase // "" for PhaseSetup
	startedAt         time.Time
	activities        []*activity           // in the order of their starts
	sessionActivities map[session]*activity // commands that continue after their call
	costLimit         float64               // in dollars; 0 for none
	tokenLimit        int64                 // 0 for none
	stopping          bool                  // a signal is stopping the work
	plan              transcript.Plan
	agents, cost      string // the working agents and the usage so far, in words
}

// activity is something in progress.
type activity struct {
	key         activityKey
	description string
	since       time.Time
	awaitsModel bool // it waits for the model
}

// activityKey identifies the activity that an event ends. The zero value is for activities without such an
// event.
type activityKey struct {
	kind activityKind
	call string
	ref  transcript.CallRef // of a request: only its agent
}

// session identifies a command that continues after its call has returned.
type session struct {
	agent string
	id    float64
}

// activityKind is what an activity waits for.
type activityKind int

const (
	ofRequest activityKind = iota + 1
	ofCall
)

// requestKey returns the key of an agent's request to the model.
func requestKey(e transcript.Event) activityKey {
	return activityKey{kind: ofRequest, ref: transcript.CallRef{Agent: e.Subagent()}}
}

// callKey returns the key of a tool call.
func callKey(id string, ref transcript.CallRef) activityKey {
	return activityKey{ofCall, id, ref}
}

// currentPhase returns the phase of the run. A run begins with PhaseSetup.
func (s *status) currentPhase() record.Phase { return cmp.Or(s.phase, record.PhaseSetup) }

// setRun sets what the status shows of the run v.
func (s *status) setRun(v *transcript.View) {
	s.plan, s.agents, s.cost = v.Plan, describeAgents(v), s.describeCost(v)
}

// applyEvent updates the status by an event. v is the run after the event.
func (s *status) applyEvent(v *transcript.View, e transcript.Event, now time.Time) {
	s.setRun(v)
	prefix := agentPrefix(v, e)
	switch d := e.Content.(type) {
	case transcript.ModelRequest:
		s.phase = record.PhaseAgent
		s.replaceActivity(&activity{key: requestKey(e), description: prefix + "waiting for the model", since: now, awaitsModel: true})
	case transcript.ModelRetry:
		s.replaceActivity(&activity{key: requestKey(e), description: prefix + "waiting to ask the model again", since: now, awaitsModel: true})
	case transcript.ModelResponse:
		s.phase = record.PhaseAgent
		s.endActivity(requestKey(e))
	case transcript.ModelFailure:
		s.endActivity(requestKey(e))
	case transcript.ToolStarted:
		if !d.Refused {
			s.replaceActivity(s.callActivity(prefix, d, now))
		}
	case transcript.ToolFinished:
		s.keepSession(d)
		s.endActivity(callKey(d.CallID, d.Ref()))
	case transcript.AgentFinished:
		s.activities = slices.DeleteFunc(s.activities, func(a *activity) bool { return a.key.kind != 0 && a.key.ref.Agent == e.Subagent() })
	case transcript.Verify:
		s.phase = record.PhaseVerification
		if d.Attempt == 0 {
			s.phase = record.PhaseBaseline
		}
	case transcript.Change: // nothing of the agent runs any more
		s.phase = record.PhaseVerification
		s.activities = slices.DeleteFunc(s.activities, func(a *activity) bool { return a.key.kind != 0 })
	case transcript.Publish:
		s.phase = record.PhasePublishing
	}
}

// callActivity returns the activity of a tool call, whose description has a prefix. If the call waits for an
// earlier command, the activity shows that command and its start.
func (s *status) callActivity(prefix string, d transcript.ToolStarted, now time.Time) *activity {
	a := &activity{key: callKey(d.CallID, d.Ref()), description: prefix + strings.TrimSpace(d.Tool+" "+d.Topic()), since: now}
	if began := s.sessionActivities[session{d.Agent, d.PolledSession()}]; began != nil {
		a.description, a.since = began.description, began.since
	}
	return a
}

// keepSession remembers the activity of a call whose command continues in a session, for later calls that wait for
// it. It does nothing for other calls.
func (s *status) keepSession(d transcript.ToolFinished) {
	id := d.Session()
	key := callKey(d.CallID, d.Ref())
	i := slices.IndexFunc(s.activities, func(a *activity) bool { return a.key == key })
	if id == 0 || i < 0 {
		return
	}
	if s.sessionActivities == nil {
		s.sessionActivities = map[session]*activity{}
	}
	s.sessionActivities[session{d.Agent, id}] = s.activities[i]
}

// agentPrefix returns the name of the event's agent and a colon. It is "" for the run's own agent.
func agentPrefix(v *transcript.View, e transcript.Event) string {
	if e.Subagent() == "" {
		return ""
	}
	return Printable(v.AgentName(e.Agent)) + ": "
}

// replaceActivity adds an activity. It ends an earlier one with the same key.
func (s *status) replaceActivity(a *activity) {
	s.endActivity(a.key)
	s.activities = append(s.activities, a)
}

// endActivity removes the activity with a key. The zero key removes none.
func (s *status) endActivity(key activityKey) {
	s.activities = slices.DeleteFunc(s.activities, func(a *activity) bool { return a.key == key && key.kind != 0 })
}

// currentActivity returns the activity to show, and how many others there are. It prefers the newest, and
// shows waiting for the model only if nothing else is in progress. shown is nil without any activity.
func (s *status) currentActivity() (shown *activity, others int) {
	for _, a := range s.activities {
		if shown == nil || shown.awaitsModel || !a.awaitsModel {
			shown = a
		}
	}
	return shown, max(0, len(s.activities)-1)
}

// idleWords has the words for a phase without a known activity.
var idleWords = map[record.Phase]string{
	record.PhaseSetup:        "preparing",
	record.PhaseBaseline:     "preparing the checks",
	record.PhaseAgent:        "preparing the next step",
	record.PhaseVerification: "looking at the change",
	record.PhasePublishing:   "publishing",
}

// logLine returns the status as a line for a log.
func (s *status) logLine(now time.Time) string {
	line := "… " + strings.ToLower(string(s.currentPhase())) + ": "
	shown, others := s.currentActivity()
	if shown == nil {
		return line + idleWords[s.currentPhase()]
	}
	line += shown.description
	if others > 0 {
		line += fmt.Sprintf(" and %d more", others)
	}
	if !shown.awaitsModel {
		line += ", running"
	}
	return line + " for " + transcript.FormatSeconds(now.Sub(shown.since).Seconds())
}

const (
	// minWords is how many terminal cells words need to be worth showing.
	minWords  = 12
	separator = " · "
)

// terminalLine returns the status as one terminal line of up to cells cells. head is the phase and time, such as
// "[Agent 1:05]", and rest is everything else: the activity, the plan's step, then agents and cost. Agents and cost
// are left out first if there is no room. With too few cells even for an activity, rest is "".
func (s *status) terminalLine(now time.Time, cells int) (head, rest string) {
	head = fmt.Sprintf("[%s %s]", s.currentPhase(), transcript.FormatClock(now.Sub(s.startedAt)))
	if s.stopping {
		head = fmt.Sprintf("[Stopping %s]", transcript.FormatClock(now.Sub(s.startedAt)))
	}
	if len(head)+len(" ")+minWords > cells {
		return fitWidth(head, cells), ""
	}
	tail := s.agents + s.cost
	room := cells - len(head) - 1 - cellCount(tail)
	if room < minWords {
		tail, room = "", cells-len(head)-1
	}
	doing, took := s.describeActivity(now)
	step := s.describeStep()
	room -= cellCount(took)
	if cellCount(doing)+cellCount(step) > room {
		doing, step = shareRoom(doing, step, room)
	}
	return head, fitWidth(" "+doing+took+step+tail, cells-len(head))
}

// shareRoom shortens activity and step to room cells together. The activity gets three fifths, or more if the
// step needs less. A step with too few cells is left out.
func shareRoom(activity, step string, room int) (shortActivity, shortStep string) {
	activityCells := min(cellCount(activity), max(room-cellCount(step), room*3/5))
	shortStep = fitWidth(step, room-activityCells)
	if cellCount(shortStep) < minWords {
		shortStep = ""
	}
	return fitWidth(activity, room-cellCount(shortStep)), shortStep
}

// describeActivity returns the current activity in words, and as took its duration and the number of others, or "".
func (s *status) describeActivity(now time.Time) (words, took string) {
	if s.stopping {
		return "another Ctrl-C leaves at once", ""
	}
	shown, others := s.currentActivity()
	if shown == nil {
		return idleWords[s.currentPhase()], ""
	}
	if d := now.Sub(shown.since); d >= time.Second {
		took = " " + transcript.FormatClock(d)
	}
	if others > 0 {
		took += fmt.Sprintf(" (+%d)", others)
	}
	return Printable(shown.description), took
}

// describeStep returns the current step of the plan, or "" outside of the agent's work.
func (s *status) describeStep() string {
	at, _ := s.plan.CurrentStep()
	if s.phase != record.PhaseAgent || at < 0 {
		return ""
	}
	return fmt.Sprintf("%sstep %d/%d: %s", separator, at+1, len(s.plan.Steps), Printable(s.plan.Steps[at].Step))
}

// describeAgents returns how many agents are working besides the run's own, or "".
func describeAgents(v *transcript.View) string {
	alive := 0
	for _, a := range v.Subagents {
		if a.Status == transcript.AgentRunning {
			alive++
		}
	}
	if alive == 0 {
		return ""
	}
	return separator + transcript.CountNoun(alive, "agent")
}

// describeCost returns the cost so far, or the tokens if no price is known. It is "" before any usage.
func (s *status) describeCost(v *transcript.View) string {
	if v.Usage == (transcript.Usage{}) {
		return ""
	}
	if cost, known := transcript.CostOf(v.AllModels()); known {
		return separator + fmt.Sprintf("$%.2f", cost) + limitSuffix(s.costLimit > 0, fmt.Sprintf("$%.2f", s.costLimit))
	}
	used := transcript.GroupThousands(v.Usage.Input + v.Usage.Output)
	return separator + used + limitSuffix(s.tokenLimit > 0, transcript.GroupThousands(s.tokenLimit)) + " tokens"
}

// limitSuffix returns " of " and a limit, or "" if limited is false.
func limitSuffix(limited bool, limit string) string {
	if !limited {
		return ""
	}
	return " of " + limit
}

// usageWords describes tokens and cost, or returns "" without tokens.
func usageWords(usage transcript.Usage, models []transcript.ModelUse) string {
	if usage.Input == 0 && usage.Output == 0 {
		return ""
	}
	words := fmt.Sprintf("%s tokens in (%s cached), %s out", transcript.GroupThousands(usage.Input), transcript.GroupThousands(usage.Cached), transcript.GroupThousands(usage.Output))
	if cost, known := transcript.CostOf(models); known {
		words += fmt.Sprintf(", $%.4f", cost)
	}
	return words
}

// usageOf describes the usage of the event's agent. For the run's own agent it is the sum of all agents.
func usageOf(v *transcript.View, e transcript.Event) string {
	if a := v.SubagentByID(e.Subagent()); a != nil {
		return usageWords(a.Usage, a.Models)
	}
	return usageWords(v.Usage, v.AllModels())
}

// totalUsage describes the usage of the whole run, or returns "" if no model was asked.
func totalUsage(v *transcript.View) string {
	words := usageWords(v.Usage, v.AllModels())
	if words == "" {
		return ""
	}
	return "used " + transcript.CountNoun(v.Turns, "turn") + ", " + words
}
