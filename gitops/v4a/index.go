package v4a

import (
	"cmp"
	"slices"
)

// index finds the first and the last occurrence of every needle under a pass,
// in one walk over the text from its end: an automaton of Aho and Corasick
// over the reversed needles.
func (f *finder) index(p pass) {
	if f.indexed[p] {
		return
	}
	f.indexed[p] = true
	a := &automaton{words: map[string]int32{}, next: map[edge]int32{}, nodes: []node{{seen: nowhere}}}
	ends := make([]int32, len(f.needles))
	for i, n := range f.needles {
		if f.ended() {
			return
		}
		ends[i] = a.add(n.lines, p)
	}
	a.link()
	a.walk(f, p)
	for i, n := range f.needles {
		n.spans[p] = a.nodes[ends[i]].seen
	}
}

type automaton struct {
	words map[string]int32
	next  map[edge]int32
	nodes []node
}

type edge struct{ from, word int32 }

// node is a state: the lines on the way to it are a suffix of some needle.
type node struct {
	fail, parent, word int32
	depth              int32
	seen               span // where a run of these lines starts
}

// add enters the lines, last one first, and returns the state of the whole.
func (a *automaton) add(lines []string, p pass) int32 {
	at := int32(0)
	for i := len(lines) - 1; i >= 0; i-- {
		e := edge{at, a.word(p.normal(lines[i]))}
		child, ok := a.next[e]
		if !ok {
			child = int32(len(a.nodes))
			a.next[e] = child
			a.nodes = append(a.nodes, node{parent: at, word: e.word, depth: a.nodes[at].depth + 1, seen: nowhere})
		}
		at = child
	}
	return at
}

func (a *automaton) word(line string) int32 {
	id, ok := a.words[line]
	if !ok {
		id = int32(len(a.words))
		a.words[line] = id
	}
	return id
}

// breadthFirst returns the states with the shallower ones first.
func (a *automaton) breadthFirst() []int32 {
	order := make([]int32, len(a.nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, k int32) int { return cmp.Compare(a.nodes[i].depth, a.nodes[k].depth) })
	return order
}

// link sets where each state falls back to.
func (a *automaton) link() {
	for _, i := range a.breadthFirst()[1:] {
		n := &a.nodes[i]
		if n.parent != 0 {
			n.fail = a.step(a.nodes[n.parent].fail, n.word)
		}
	}
}

func (a *automaton) step(from, word int32) int32 {
	for {
		if to, ok := a.next[edge{from, word}]; ok {
			return to
		}
		if from == 0 {
			return 0
		}
		from = a.nodes[from].fail
	}
}

// walk reads the text from its end and notes where each state is met. What a
// state has seen, the states that it falls back to have seen as well.
func (a *automaton) walk(f *finder, p pass) {
	at := int32(0)
	for i := f.text.lines() - 1; i >= 0 && !f.giveUp(i); i-- {
		word, ok := a.words[p.normal(f.text.line(i))]
		if !ok {
			at = 0
			continue
		}
		at = a.step(at, word)
		a.nodes[at].seen = a.nodes[at].seen.with(span{i, i})
	}
	order := a.breadthFirst()
	for k := len(order) - 1; k > 0; k-- {
		n := &a.nodes[order[k]]
		fail := &a.nodes[n.fail]
		fail.seen = fail.seen.with(n.seen)
	}
}

// with returns the smallest span that holds both.
func (s span) with(o span) span {
	switch {
	case o.first < 0:
		return s
	case s.first < 0:
		return o
	}
	return span{min(s.first, o.first), max(s.last, o.last)}
}
