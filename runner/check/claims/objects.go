package claims

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// codeMark stands for a code span in a plain sentence.
const codeMark = "``"

var (
	word = lazyregexp.New("``|[\\pL\\pN'’_-]*[\\pL\\pN]|[^\\s]")
	// stops end what a verb is about.
	stops = lazyregexp.New(`^(?:that|which|where|who|whose|whom|while|because|since|so|as|by|via|with|than|using|about|after|instead|rather|of|on|at|between|under|over|through|against|during|into|from|to|for|described|modell?ed|reported|mentioned|documented|defined)$`)
	// behindObject finds what may follow an object. Before any other word a name describes that word: "the
	// `Next.js` config".
	behindObject = lazyregexp.New(`^(?:[^\pL\pN]|and|or|to|so|for|with|which|that|by|from|but|using|accordingly|too|itself|files?|in|where|as|such|because|since|while|then|also|again|plus|instead|rather|after|against|on)$`)
	// verb finds a verb that goes on behind a link.
	verb     = lazyregexp.New(`^(?:added|created|updated|changed|edited|modified|fixed|rewrote|removed|deleted|renamed|extended|implemented|wrote|ran|executed)$`)
	links    = []string{",", "and", "&", "then", "also"}
	articles = lazyregexp.New(`^(?:the|a|an|new|existing|files?|tests?|both|its)$`)
	// participle finds what stands before a place that is only mentioned. "The format used in `a.go`" says nothing about a change of a.go.
	participle = lazyregexp.New(`ed$|^(?:found|shown|seen|given|written|made)$`)
	ofTests    = lazyregexp.New(`^(?:tests?|cases?|coverage)$`)
)

// wordsOf splits a plain text into words in lower case, code marks and single other characters.
func wordsOf(text string) []string { return word().FindAllString(strings.ToLower(text), -1) }

// placesOf lists the words that a changed file follows, by the verb. "Fixed the crash in `a.go`" does not say
// where it was fixed.
func placesOf(verb string) []string {
	switch {
	case strings.HasPrefix(verb, "fix"):
		return []string{"("}
	case strings.HasPrefix(verb, "add"), strings.HasPrefix(verb, "rename"), strings.HasPrefix(verb, "wr"):
		return []string{"in", "to", "into", "("}
	case strings.HasPrefix(verb, "remove"), strings.HasPrefix(verb, "delete"):
		return []string{"in", "from", "("}
	}
	return []string{"in", "("}
}

// objects returns which code spans of a plain text, in their order, a verb before from is about: its direct
// objects if direct is true, and what follows one of places. A name behind another preposition is only
// mentioned.
func objects(text string, from int, places []string, direct bool) (spans []int) {
	next := strings.Count(text[:from], codeMark)
	words := wordsOf(text[from:])
	takes := direct
	for i, w := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		switch {
		case w == codeMark:
			if takes && endsPhrase(words[i+1:]) {
				spans = append(spans, next)
			}
			next++
		case slices.Contains(places, w):
			takes = beginsName(words[i+1:]) && !participle().MatchString(before)
		case w == ":":
			if len(spans) > 0 {
				return spans
			}
		case w == "in":
			takes = false
		case w == "for" && ofTests().MatchString(before):
			takes = false // until a place follows: "tests for the lexer in `lexer_test.go`"
		case verb().MatchString(w) && slices.Contains(links, before):
			takes = true
		case w == "—" || w == "–" || w == "-", stops().MatchString(w):
			return spans
		}
	}
	return spans
}

// endsPhrase reports whether words can follow an object.
func endsPhrase(words []string) bool { return len(words) == 0 || behindObject().MatchString(words[0]) }

// beginsName reports whether words begin with a code span, apart from articles.
func beginsName(words []string) bool {
	i := slices.IndexFunc(words, func(w string) bool { return !articles().MatchString(w) })
	return i >= 0 && words[i] == codeMark
}
