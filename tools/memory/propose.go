package memory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/tools"
)

// ProposeName is the name of the tool that proposes a lesson.
const ProposeName = "propose_lesson"

// Proposal is a model's proposed lesson.
type Proposal struct {
	Claim    string   `json:"claim"`
	Evidence []string `json:"evidence"`
}

var proposeSpec = tools.Spec{
	Name: ProposeName,
	Description: "Proposes a lesson for later runs on this repository, which people review like code: something that holds beyond this task, cost you time to find out, " +
		"and can be shown. At most a few in a run; none is better than one that the code tells by itself.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"claim":{"type":"string","description":"The lesson in one plain sentence, at most 500 bytes."},` +
		`"evidence":{"type":"array","items":{"type":"string"},"description":"What shows it, 1 to 5: a path from the repository's root, path@commit or path@blob, or check:NAME for a check of the job that ran."}` +
		`},"required":["claim","evidence"],"additionalProperties":false}`),
}

// Take stores a proposed lesson, or returns a refusal for the model.
type Take func(ctx context.Context, p Proposal) (taken Lesson, refusal string, err error)

// Propose returns the tool propose_lesson. A nil take means that proposals are not accepted.
func Propose(take Take) tools.Tool {
	return tools.Tool{Spec: proposeSpec, Mutates: take != nil, Run: tools.Decoded(func(ctx context.Context, _ tools.Call, p Proposal) (tools.Result, error) {
		if take == nil {
			return tools.Refuse("propose_lesson: no lessons are taken from you: memory.propose is off, or another agent has started you. Go on without; what others should know can stand in your last message."), nil
		}
		lesson, refusal, err := take(ctx, p)
		if err != nil {
			return tools.Result{}, fmt.Errorf("take the lesson: %w", err)
		}
		if refusal != "" {
			return tools.Refuse("propose_lesson: " + refusal), nil
		}
		return tools.Result{
			Output: fmt.Sprintf("Noted as %s, for people to review. The runner writes it down after your work; leave the file of lessons alone.", lesson.ID),
			Detail: map[string]any{"lesson": lesson.ID},
		}, nil
	})}
}
