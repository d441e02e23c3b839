package assembly

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/question"
	"github.com/agent-ci/agent-ci/tools/repl"
)

// ResumeState is the state of a stopped agent, built from the run's events. It adds to the transcript's View.
type ResumeState struct {
	agent.ResumeState

	questions    []question.Question // questions that the agent asked people
	sentOnce     sentMessages
	loadedSkills []loadedSkill
	scriptState  code.State
	javaScript   bool       // js_repl was called
	shownFiles   shownFiles // files shown to a model that writes edits as text
}

// Apply applies the next event of the transcript.
func (p *ResumeState) Apply(e transcript.Event) error {
	switch d := e.Content.(type) {
	case transcript.ModelRequest:
		if p.sentOnce == nil {
			p.sentOnce = sentMessages{}
		}
		p.sentOnce.markSent(e.Data)
	case transcript.ToolStarted:
		if d.Caller == 0 && d.Tool == dialect.Exec {
			p.scriptState.Cells++
		}
	case transcript.ToolFinished:
		if err := p.applyCall(d, e.Data); err != nil {
			return err
		}
	}
	return p.ResumeState.Apply(e)
}

// applyCall notes the effects of a finished call: questions to people, values that scripts stored, the use of js_repl,
// loaded skills, and shown files. raw is the event's data.
func (p *ResumeState) applyCall(call transcript.ToolFinished, raw json.RawMessage) error {
	p.javaScript = p.javaScript || call.Tool == repl.Name
	if name := call.LoadedSkill(); name != "" {
		p.loadedSkills = append(p.loadedSkills, loadedSkill{name: name, inConversation: call.Caller == 0})
	}
	var undecoded struct{ Detail json.RawMessage }
	if err := json.Unmarshal(raw, &undecoded); err != nil || undecoded.Detail == nil {
		return err
	}
	switch {
	case call.Caller == 0 && slices.Contains(scriptTools, call.Tool): // a failed script may have stored values, too
		return json.Unmarshal(undecoded.Detail, &p.scriptState) // adds its stored values
	case call.Failed: // it asked and showed nothing
	case call.Tool == questionTool:
		var asked struct{ Questions []question.Question }
		err := json.Unmarshal(undecoded.Detail, &asked)
		p.questions = append(p.questions, asked.Questions...)
		return err
	case slices.Contains(fileShowingTools, call.Tool):
		return p.shownFiles.add(undecoded.Detail)
	}
	return nil
}

// StoppedAgent holds the state for resuming a stopped agent.
type StoppedAgent struct {
	State    *ResumeState
	Plan     transcript.Plan
	ModelUse []transcript.ModelUse // use of the models so far
	// Servers are the MCP servers with their last recorded state.
	Servers []transcript.MCPServer
	// Subagents are those that agents of the run started.
	Subagents []*transcript.Subagent
	Ended     bool // the run ended; otherwise it was killed
	WorkPlace workspace.WorkPlace
}

// finishInterrupted finishes the calls of the last answer in a resumed run, and tells the model what has changed since.
// Call it after makeTools.
func (a *Agent) finishInterrupted(ctx context.Context) error {
	if a.resumeFrom == nil {
		return nil
	}
	stopped := a.resumeFrom
	a.resumeFrom = nil
	if err := a.conversation.Resume(ctx, &stopped.State.ResumeState, stopped.interruptedResult); err != nil {
		return err
	}
	if sentences := stopped.describeChanges(); len(sentences) > 0 {
		return a.conversation.Tell(strings.Join(append(sentences, "Look at the checkout before you go on."), " "))
	}
	return nil
}

// describeChanges returns sentences that tell the model what has changed since the run was stopped.
func (s *StoppedAgent) describeChanges() []string {
	var sentences []string
	if s.Ended {
		sentences = append(sentences, "The run was stopped, and goes on now. What was said of budgets before holds no more: you are told when one is nearly used up.")
	}
	switch s.WorkPlace {
	case workspace.InChange:
		sentences = append(sentences, "Your work so far was put into a fresh checkout. Files that git ignores are not there unless the setup commands make them, and nothing that your commands started runs.")
	case workspace.InPatches:
		sentences = append(sentences, "The run goes on on another machine. Your patches were applied there again; what commands changed is not there, and nothing that they started runs.")
	default:
		if s.State.HasText("Process running with session ID ") {
			sentences = append(sentences, "The runner was started again, and what your commands had started and left running has ended.")
		}
	}
	if s.State.HasText("Script running with cell ID ") {
		sentences = append(sentences, "Scripts that had not ended are gone, with their cells; what they had stored when you last heard of them is there.")
	}
	if lostAgents := s.describeLostSubagents(); lostAgents != "" {
		sentences = append(sentences, lostAgents)
	}
	if s.State.javaScript {
		sentences = append(sentences, "The kernel of js_repl has ended, and what was defined in it is gone.")
	}
	return sentences
}

// maxQuotedWords is how many bytes of a lost subagent's last words are quoted.
const maxQuotedWords = 4000

// describeLostSubagents returns a text that lists the subagents lost when the run was stopped, and the fate of their changes.
// It returns "" if there are none.
func (s *StoppedAgent) describeLostSubagents() string {
	var lines []string
	for _, a := range s.Subagents {
		if a.StartedBy != transcript.MainAgent {
			continue
		}
		words := fmt.Sprintf("- %s (%s): %s after %s", a.ID, a.Name, a.Status, transcript.CountNoun(a.Turns, "turn"))
		if text := clip.Visible(a.Text, maxQuotedWords); text != "" {
			words += fmt.Sprintf("; its last words: %q", text)
		}
		lines = append(lines, words)
	}
	if len(lines) == 0 {
		return ""
	}
	state := "stands"
	if s.WorkPlace == workspace.InPatches {
		state = "was applied again, as far as it fits" // without what commands changed
	}
	return "The agents that you had started are gone, with their copies of the tree; what was taken over of their changes " + state + ". Start others for what is left to do:\n" + strings.Join(lines, "\n") + "\n"
}

// interruptedResult returns the result of a call that was running when the runner was killed. It tells the model what
// may have happened.
func (s *StoppedAgent) interruptedResult(call tools.Call) tools.Result {
	const head = "The runner was killed while this call ran, and was started again. "
	switch {
	case call.Name == dialect.Exec:
		return tools.Refuse(head + "The script is gone, with what it stored, and was not run again. What its calls did stands: look at what is there before you make them again.")
	case dialect.Is(call.Name, dialect.Leads):
		return tools.Refuse(head + "All agents are gone, and nothing of it was done again.")
	case call.Name == dialect.Wait:
		return tools.Refuse(head + "All scripts are gone, and none was run again.")
	case changesFiles(call.Name):
		return tools.Refuse(head + "Some of its files may be changed, and others not: look at them, and send what is missing if it is still right.")
	}
	return tools.Refuse(head + "It was not run again. A command may have had some of its effects and not others: look at what is there, and repeat it if that is safe.")
}
