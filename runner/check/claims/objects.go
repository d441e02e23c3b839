package claims

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// codeMark replaces a code span in a plain sentence.
const codeMark = "``"

var (
	word = lazyregexp.New("``|[\\pL\\pN'’_-]*[\\pL\\pN]|[^\\s]")
	// asides match words after which a sentence claims nothing.
	asides = lazyregexp.New(`(?i)\b(?:that|which|who|whose|whom|where|while|because|since|so)\b`)
	// stops match words that end the object of a verb.
	stops = lazyregexp.New(`^(?:as|by|via|with|than|next|near|beside|using|about|after|instead|rather|of|on|at|between|under|over|through|against|during|into|from|to|for|described|modell?ed|reported|mentioned|documented|defined)$`)
	// behindObject matches words that may follow an object. Before any other word, the name only
	// describes that word, as in "the `Next.js` config".
	behindObject = lazyregexp.New(`^(?:[^\pL\pN]|\pL+ly|and|or|to|so|for|with|which|that|by|from|but|using|too|itself|files?|in|where|as|such|because|since|while|then|also|again|plus|instead|rather|after|against|on|twice)$`)
	articles     = lazyregexp.New(`^(?:the|a|an|new|existing|files?|tests?|both|its)$`)
	// participle matches words after which a place is only mentioned. "The format used in `a.go`"
	// claims no change of a.go.
	participle = lazyregexp.New(`ed$|^(?:found|shown|seen|given|written|made)$`)
	ofTests    = lazyregexp.New(`^(?:tests?|cases?|coverage)$`)
)

// verb is a verb that claims an action.
type verb struct {
	forms        []string // the forms that claim it was done
	isRun        bool     // a command was run; otherwise something was changed
	isAddition   bool     // it makes tests, which can be counted
	actsOnObject bool     // its direct object was changed or run
	prepositions []string // words before other names that were changed or run
}

// verbsOf returns the verbs that claim something. "Fixed the crash in `a.go`" does not say that
// a.go was changed.
var verbsOf = sync.OnceValue(func() []verb {
	forms := strings.Fields
	with := forms("with via using by running (")
	return []verb{
		{forms: forms("added adds adding created creates creating wrote writes writing introduced introduces introducing implemented implements implementing"), isAddition: true, actsOnObject: true, prepositions: forms("in to into (")},
		{forms: forms("removed removes removing deleted deletes deleting"), isAddition: true, actsOnObject: true, prepositions: forms("in from (")},
		{forms: forms("updated updates updating changed changes changing edited edits editing modified modifies modifying rewrote rewrites rewriting extended extends extending adapted adapts adapting bumped bumps bumping refactored refactors refactoring regenerated regenerates split splits"), actsOnObject: true, prepositions: forms("in (")},
		{forms: forms("renamed renames renaming moved moves moving"), actsOnObject: true, prepositions: forms("in to into (")},
		{forms: forms("fixed fixes fixing"), actsOnObject: true, prepositions: forms("(")},
		{forms: forms("documented documents documenting"), prepositions: forms("in")},
		{forms: forms("ran re-ran executed"), isRun: true, actsOnObject: true, prepositions: with},
		{forms: forms("tested verified validated confirmed checked formatted linted built"), isRun: true, prepositions: with},
	}
})

// clause is a verb that claims something, with the text after it up to the next such verb: from and to are
// its bounds.
type clause struct {
	verb     *verb
	from, to int
}

// clauseStart matches the verb of a clause: at the start of a sentence, after its subject, or after
// another clause.
var clauseStart = sync.OnceValue(func() *regexp.Regexp {
	var past, present, going []string
	for _, v := range verbsOf() {
		for _, form := range v.forms {
			switch {
			case strings.HasSuffix(form, "ing"):
				going = append(going, form)
			case strings.HasSuffix(form, "s"):
				present = append(present, form)
			default:
				past = append(past, form)
			}
		}
	}
	either := func(forms []string) string { return "(" + strings.Join(forms, "|") + `)\b` }
	return regexp.MustCompile(clauseBegin + either(past) +
		`|^[\s*+>#-]*(?:this|the) (?:pr|pull request|change|patch|commit|branch) (?:also )?` + either(present) +
		`|(?:,|;| and| then)(?: i| we)?(?: also| then)? ` + either(append(past, present...)) +
		`|\bby ` + either(going))
})

// splitClauses splits a text at its verbs, up to the first aside. It returns nil unless the text begins
// with a verb that claims something.
func splitClauses(text string) (all []clause) {
	end := len(text)
	if aside := asides().FindStringIndex(text); aside != nil {
		end = aside[0]
	}
	for _, m := range clauseStart().FindAllStringSubmatchIndex(text[:end], -1) {
		group := 1           // the alternative of clauseStart that matched, by its verb
		for m[2*group] < 0 { // this group did not match
			group++
		}
		const lastAtStart = 2 // the first two alternatives match the start of a sentence
		if len(all) == 0 && group > lastAtStart {
			return nil
		}
		verbStart, verbEnd := m[2*group], m[2*group+1]
		form := strings.ToLower(text[verbStart:verbEnd])
		i := slices.IndexFunc(verbsOf(), func(v verb) bool { return slices.Contains(v.forms, form) })
		if len(all) > 0 {
			all[len(all)-1].to = m[0]
		}
		all = append(all, clause{&verbsOf()[i], m[1], end})
	}
	return all
}

// wordsOf splits a plain text into lower-case words, code marks and other single characters.
func wordsOf(text string) []string { return word().FindAllString(strings.ToLower(text), -1) }

// objectSpans returns the indexes of the code spans that a clause says were changed or run: the direct
// objects of its verb, and the names after its prepositions. Of "Added `f` to `a.go` with `g`", these are the
// first two; `g` is only mentioned.
func objectSpans(text string, c clause) (spans []int) {
	next := strings.Count(text[:c.from], codeMark)
	words := wordsOf(text[c.from:c.to])
	acts := c.verb.actsOnObject // whether the verb acts on the next name
	for i, w := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		switch {
		case w == codeMark:
			if acts && canEndObject(words[i+1:]) {
				spans = append(spans, next)
			}
			next++
		case slices.Contains(c.verb.prepositions, w):
			onlyMentioned := participle().MatchString(before)
			acts = beginsWithCode(words[i+1:]) && !onlyMentioned
		case w == "in":
			acts = false
		case w == ":":
			if len(spans) > 0 {
				return spans
			}
		case w == "for" && ofTests().MatchString(before):
			acts = false // until a place follows, as in "tests for the lexer in `lexer_test.go`"
		case w == "—" || w == "–" || w == "-", stops().MatchString(w):
			return spans
		}
	}
	return spans
}

// canEndObject reports whether an object can end before these words.
func canEndObject(words []string) bool {
	return len(words) == 0 || behindObject().MatchString(words[0])
}

// beginsWithCode reports whether words begin with a code span, ignoring articles.
func beginsWithCode(words []string) bool {
	i := slices.IndexFunc(words, func(w string) bool { return !articles().MatchString(w) })
	return i >= 0 && words[i] == codeMark
}
