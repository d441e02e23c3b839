package search

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/tools"
)

// wordsOf returns the words of a tool: its name, description, and parameter names, including nested
// ones.
func wordsOf(spec tools.Spec) []string {
	words := splitWords(spec.Name)
	words = append(words, splitWords(spec.Description)...)
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
			words = append(words, splitWords(name)...)
			words = parameterWords(words, property, depth-1)
		}
	}
	return parameterWords(words, object["items"], depth-1)
}

// splitWords returns a text's words in lower case and singular. Words end at anything but letters and
// digits, such as _ - and ., and where the case changes: listOpenIssues, HTTPServer.
func splitWords(text string) []string {
	const usualLength = 6 // of a word with what ends it
	words := slices.Grow([]string(nil), len(text)/usualLength)
	begin, before := 0, ' '
	addWordUntil := func(at int) {
		if at > begin {
			words = append(words, singular(strings.ToLower(text[begin:at])))
		}
		begin = at
	}
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			addWordUntil(i)
			_, size := utf8.DecodeRuneInString(text[i:]) // 1 of a byte that is no text
			begin = i + size
		case i > begin && unicode.IsUpper(r) && (!unicode.IsUpper(before) || startsWithLower(text[next:])):
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

// singular removes an English plural ending, because a search for an issue means a list of issues.
func singular(word string) string {
	const shortest = 4
	switch {
	case len(word) < shortest || !strings.HasSuffix(word, "s"), strings.ContainsRune("sui", rune(word[len(word)-2])):
		return word
	case strings.HasSuffix(word, "ies") && len(word) > shortest:
		return strings.TrimSuffix(word, "ies") + "y"
	}
	return strings.TrimSuffix(word, "s")
}
