package search

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/tools"
)

// wordsOf are the words of what is known of a tool: of its name, of its description and of
// the names of its parameters, those of objects in them too.
func wordsOf(spec tools.Spec) []string {
	words := split(spec.Name)
	words = append(words, split(spec.Description)...)
	var schema any
	if json.Unmarshal(spec.Parameters, &schema) == nil {
		words = parameterWords(words, schema, deepest)
	}
	return words
}

// deepest is how far objects in parameters are looked into.
const deepest = 8

// parameterWords adds the words of the names of the properties of a schema.
func parameterWords(words []string, schema any, depth int) []string {
	object, ok := schema.(map[string]any)
	if !ok || depth == 0 {
		return words
	}
	if properties, ok := object["properties"].(map[string]any); ok {
		for name, property := range properties {
			words = append(words, split(name)...)
			words = parameterWords(words, property, depth-1)
		}
	}
	return parameterWords(words, object["items"], depth-1)
}

// split gives the words of a text in lower case and without the ending of a plural. A word
// ends at what is neither a letter nor a digit, as _ - and . are, and where its case says
// that another begins: listOpenIssues, HTTPServer.
func split(text string) []string {
	var words []string
	runes, begin := []rune(text), 0
	end := func(at int) {
		if at > begin {
			words = append(words, singular(strings.ToLower(string(runes[begin:at]))))
		}
		begin = at
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end(i)
		}
	}
	end(len(runes))
	return words
}

// singular takes the ending of an English plural from a word: who looks for an issue wants
// what lists issues.
func singular(word string) string {
	const shortest = 4
	endings := []string{"ss", "us", "is"}
	switch {
	case len(word) < shortest || !strings.HasSuffix(word, "s"), slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(word, e) }):
		return word
	case strings.HasSuffix(word, "ies") && len(word) > shortest:
		return strings.TrimSuffix(word, "ies") + "y"
	}
	return strings.TrimSuffix(word, "s")
}
