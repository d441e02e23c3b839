package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/agent-ci/agent-ci/tools"
)

// The parameters of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009): the
// saturation of repeated words, and the weight of a text's length.
const (
	k1 = 1.2
	b  = 0.75
)

// Index finds tools by words. It is immutable and safe for concurrent use.
type Index struct {
	names       []string
	postings    map[string][]posting // by word, in the order of the tools
	lengthTerms []float64            // for each tool, the part of BM25's denominator that depends on its length
}

// posting is the frequency of a word in a tool's text.
type posting struct {
	tool  int
	times float64
}

// NewIndex returns an index of the words in tools' names, descriptions and parameters.
func NewIndex(specs []tools.Spec) *Index {
	x := &Index{postings: map[string][]posting{}}
	var wordCounts []float64 // by tool
	total := 0.0
	for tool, spec := range specs {
		x.names = append(x.names, spec.Name)
		words := wordsOf(spec)
		for _, word := range words {
			x.countWord(word, tool)
		}
		wordCounts = append(wordCounts, float64(len(words)))
		total += float64(len(words))
	}
	mean := max(total/float64(max(len(specs), 1)), 1) // never 0, also without tools or words
	for _, count := range wordCounts {
		x.lengthTerms = append(x.lengthTerms, k1*(1-b+b*count/mean))
	}
	return x
}

// countWord counts one occurrence of a word in a tool's text. Count all words of a tool before those of the next tool.
func (x *Index) countWord(word string, tool int) {
	postings := x.postings[word]
	if last := len(postings) - 1; last >= 0 && postings[last].tool == tool {
		postings[last].times++
		return
	}
	x.postings[word] = append(postings, posting{tool, 1})
}

// Find returns the names of up to limit tools that contain a word of the query, best first. Tools with equal scores keep
// their order.
func (x *Index) Find(query string, limit int) []string {
	scores := x.scores(query)
	var found []int
	for tool, score := range scores {
		if score > 0 {
			found = append(found, tool)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), a-b) })
	names := make([]string, 0, min(limit, len(found)))
	for _, i := range found[:min(limit, len(found))] {
		names = append(names, x.names[i])
	}
	return names
}

// scores returns the BM25 score of each tool for a query. A tool's score is the sum over the query's words. A word that
// fewer tools contain counts more. A tool without any of the words has score 0.
func (x *Index) scores(query string) []float64 {
	scores := make([]float64, len(x.names))
	words := splitWords(query)
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		postings := x.postings[word]
		rarity := math.Log(1 + (float64(len(x.names)-len(postings))+0.5)/(float64(len(postings))+0.5))
		for _, p := range postings {
			scores[p.tool] += rarity * p.times * (k1 + 1) / (p.times + x.lengthTerms[p.tool])
		}
	}
	return scores
}
