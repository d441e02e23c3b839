package search

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/tools"
)

// wordsOf returns the words in a tool's name, its description and the names of its parameters, including nested ones.
func wordsOf(spec tools.Spec) []string {
	words := splitWords(spec.Name)
	words = append(words, splitWords(spec.Description)...)
	var schema any
	if json.Unmarshal(spec.Parameters, &schema) == nil {
		words = parameterWords(words, schema, maxDepth)
	}
	return words
}

// maxDepth is the maximum depth to which parameterWords looks into schemas.
const maxDepth = 8

// parameterWords appends the words in the names of a schema's properties, down to depth levels.
func parameterWords(words []string, schema any, depth int) []string {
	object, isObject := schema.(map[string]any)
	if !isObject || depth == 0 {
		return words
	}
	if properties, isObject := object["properties"].(map[string]any); isObject {
		for name, property := range properties {
			words = append(words, splitWords(name)...)
			words = parameterWords(words, property, depth-1)
		}
	}
	return parameterWords(words, object["items"], depth-1)
}

// splitWords returns a text's words in lower case and singular. Words end at characters such as _ - and ., and where the
// case changes, as in listOpenIssues and HTTPServer.
func splitWords(text string) []string {
	const usualLength = 6 // of a word and the character after it
	words := slices.Grow([]string(nil), len(text)/usualLength)
	begin, before := 0, ' '
	addWordUntil := func(at int) {
		if at > begin {
			words = append(words, singular(strings.ToLower(text[begin:at])))
		}
		begin = at
	}
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:]) // 1 for a byte that is no UTF-8
		next := i + size
		changesCase := unicode.IsUpper(r) && (!unicode.IsUpper(before) || startsWithLower(text[next:]))
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			addWordUntil(i)
			begin = next
		case i > begin && changesCase:
			addWordUntil(i)
		}
		before = r
	}
	addWordUntil(len(text))
	return words
}

func startsWithLower(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsLower(r)
}

// singular returns a word without an English plural ending, so that a search for issue finds a list of issues.
func singular(word string) string {
	const shortest = 4
	if len(word) < shortest || !strings.HasSuffix(word, "s") {
		return word
	}
	switch {
	case strings.ContainsRune("sui", rune(word[len(word)-2])): // as in class, status and basis
		return word
	case strings.HasSuffix(word, "ies") && len(word) > shortest:
		return strings.TrimSuffix(word, "ies") + "y"
	}
	return strings.TrimSuffix(word, "s")
}
