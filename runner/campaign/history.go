package campaign

import "time"

// Moment is how far a campaign was at a time, with the template that it has now.
type Moment struct {
	At       time.Time `json:"at"`
	Targets  int       `json:"targets"` // of the plan
	Settled  int       `json:"settled"`
	SpentUSD float64   `json:"spent_usd"` // by all templates
}

// mostMoments is how many moments a status has.
const mostMoments = 400

// done says that nothing of a target is left to run.
func (c *Standing) done(e *Entry) bool {
	return e.Claimed == nil && !e.Again && e.Last != nil && e.Last.Template == c.Template
}

// noting changes an entry and keeps count of those that are done.
func (c *Standing) noting(e *Entry, change func()) {
	if c.done(e) {
		c.ended--
	}
	change()
	if c.done(e) {
		c.ended++
	}
}

// note adds the moment of an event.
func (c *Standing) note(at time.Time) {
	now := Moment{at, c.planned, c.ended, c.Spent.USD}
	if n := len(c.history); n > 0 && c.history[n-1].At.Equal(at) {
		c.history[n-1] = now
		return
	}
	c.history = append(c.history, now)
}

// thinned are moments of a history, at most so many, its first and last among them.
func thinned(history []Moment, most int) []Moment {
	if len(history) <= most {
		return append([]Moment{}, history...)
	}
	kept := make([]Moment, most)
	for i := range kept {
		kept[i] = history[i*(len(history)-1)/(most-1)]
	}
	return kept
}
