package program

import "strings"

// Quoted returns a text as one quoted word for a shell, like git.
func Quoted(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}
