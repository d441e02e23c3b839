package agent

import (
	"fmt"
	"slices"
)

// Facts are what a fold of a record must have as the conversation that wrote it.
type Facts struct {
	History         string
	Sent, Logged    int
	Measure, Found  string
	Numbered, Turns int
	Calls, Failed   int
	Said            string
}

func factsOf(s *state) Facts {
	return Facts{
		string(slices.Concat(s.history[:s.loggedItems]...)), s.sentItems, s.loggedItems, fmt.Sprint(s.lastCount), fmt.Sprint(s.found),
		s.callNumber, s.spent.Turns, s.spent.Calls, int(s.editFailures), s.lastWords,
	}
}

func (c *Conversation) Facts() Facts { return factsOf(&c.state) }

func (p *ResumeState) Facts() Facts { return factsOf(&p.state) }
