package engine

import (
	"cmp"
	"slices"
	"time"
)

// timer is a timer set by a script.
type timer struct {
	id  int
	due time.Time
}

// timers holds the set timers, the next one first. There are at most message.MaxTimers.
type timers []timer

// set adds a timer.
func (t *timers) set(id int, due time.Time) {
	set := timer{id, due}
	index, _ := slices.BinarySearchFunc(*t, set, func(a, b timer) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) })
	*t = slices.Insert(*t, index, set)
}

// clear removes a timer, if it is set.
func (t *timers) clear(id int) {
	if index := slices.IndexFunc(*t, func(set timer) bool { return set.id == id }); index >= 0 {
		*t = slices.Delete(*t, index, index+1)
	}
}

// take removes the timers that are due, and returns their IDs in order.
func (t *timers) take(now time.Time) (ids []int) {
	for len(*t) > 0 && !(*t)[0].due.After(now) {
		ids = append(ids, (*t)[0].id)
		*t = (*t)[1:]
	}
	return ids
}
