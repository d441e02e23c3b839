package program

import "strings"

// Quoted returns a text as one word of a shell, quoted as git quotes it.
func Quoted(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}
