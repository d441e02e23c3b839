package engine

import (
	"cmp"
	"container/heap"
	"time"
)

// timer is a timer set by a script.
type timer struct {
	id  int
	due time.Time
	at  int // in the heap
}

// timers holds the set timers, next one first.
type timers struct {
	queue queue
	byID  map[int]*timer
}

func (t *timers) set(id int, due time.Time) {
	if t.byID == nil {
		t.byID = map[int]*timer{}
	}
	t.byID[id] = &timer{id: id, due: due}
	heap.Push(&t.queue, t.byID[id])
}

func (t *timers) clear(id int) {
	if set := t.byID[id]; set != nil {
		heap.Remove(&t.queue, set.at)
		delete(t.byID, id)
	}
}

// next is when the next one is due.
func (t *timers) next() (due time.Time, is bool) {
	if len(t.queue) == 0 {
		return time.Time{}, false
	}
	return t.queue[0].due, true
}

// take removes and returns the due timers in order.
func (t *timers) take(now time.Time) (ids []int) {
	for len(t.queue) > 0 && !t.queue[0].due.After(now) {
		ids = append(ids, t.queue[0].id)
		t.clear(t.queue[0].id)
	}
	return ids
}

// queue is a heap.
type queue []*timer

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return cmp.Or(q[i].due.Compare(q[j].due), cmp.Compare(q[i].id, q[j].id)) < 0
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queue) Push(x any) {
	set := x.(*timer)
	set.at = len(*q)
	*q = append(*q, set)
}

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
