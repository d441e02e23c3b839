package agent

import (
	"fmt"
	"slices"
)

// Facts are what a fold of a record must have as the conversation that wrote it.
type Facts struct {
	History               string
	Sent, Logged          int
	Measure, Found        string
	Numbered, Turns       int
	Calls, Hosted, Failed int
	Said                  string
}

func factsOf(s *state) Facts {
	return Facts{
		string(slices.Concat(s.history[:s.logged]...)), s.sent, s.logged, fmt.Sprint(s.measure), fmt.Sprint(s.found),
		s.numbered, s.spent.Turns, s.spent.Calls, s.spent.Hosted, int(s.tries), s.said,
	}
}

func (c *Conversation) Facts() Facts { return factsOf(&c.state) }

func (p *Past) Facts() Facts { return factsOf(&p.state) }
