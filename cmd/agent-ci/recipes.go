package main

import (
	"bufio"
	"bytes"
	"path"
	"slices"
	"strings"
)

// recipesFolder holds ready recipes, each a folder with a job and its workflow.
const recipesFolder = "recipes"

// recipeNames are the names of the recipes, in order.
func recipeNames() []string {
	entries, _ := starter.ReadDir(recipesFolder) // part of the program
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// recipeFiles returns a recipe's files by destination path.
func recipeFiles(name string) map[string]string {
	return map[string]string{
		".github/agent-ci/" + name + ".yml":           path.Join(recipesFolder, name, "job.yml"),
		".github/workflows/agent-ci-" + name + ".yml": path.Join(recipesFolder, name, "workflow.yml"),
	}
}

// listRecipes are the recipes, a line each, with what the first sentence of its job says.
func listRecipes() string {
	var b strings.Builder
	for _, name := range recipeNames() {
		job, _ := starter.ReadFile(path.Join(recipesFolder, name, "job.yml")) // part of the program
		b.WriteString("\n  " + name + strings.Repeat(" ", max(1, 15-len(name))) + firstSentence(job))
	}
	return b.String()
}

// firstSentence returns the first sentence of a file's leading comment.
func firstSentence(content []byte) string {
	var words []string
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		line, comment := strings.CutPrefix(lines.Text(), "# ")
		if !comment {
			break
		}
		words = append(words, line)
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " "), ". ")
	return strings.TrimSuffix(sentence, ".")
}

// unknownRecipe is the first name that no recipe has; empty where there is none.
func unknownRecipe(names []string) string {
	for _, name := range names {
		if !slices.Contains(recipeNames(), name) {
			return name
		}
	}
	return ""
}
