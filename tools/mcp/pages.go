package mcp

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// endlessError reports an endless list.
type endlessError struct{ why string }

func (e *endlessError) Error() string { return "the list has no end: " + e.why }

// pages fetches pages by cursor and passes each to take. A list with a repeated cursor or too many
// pages is endless.
func pages[T any](fetch func(cursor string) (items []T, next string, err error), take func(items []T) error) error {
	requested := map[string]bool{}
	var first []T
	for cursor := ""; len(requested) < maxPages; {
		requested[cursor] = true
		items, next, err := fetch(cursor)
		switch {
		case cursor == emptyCursor && endsAtEmptyCursor(items, first, err):
			return nil
		case err != nil:
			return err
		case next != "" && next != emptyCursor && requested[next]:
			return &endlessError{fmt.Sprintf("the cursor %q came again", shortLine(next))}
		}
		if err := take(items); err != nil {
			return err
		}
		if next == "" || requested[next] { // emptyCursor asked twice also ends the list
			return nil
		}
		if cursor == "" {
			first = items
		}
		cursor = next
	}
	return &endlessError{fmt.Sprintf("it has more than %d pages", maxPages)}
}

// endsAtEmptyCursor reports whether a server uses an empty cursor for the end of a list. Asked with that cursor,
// such a server repeats the first page or refuses.
func endsAtEmptyCursor[T any](items, first []T, err error) bool {
	if err != nil {
		_, refused := errors.AsType[*jsonrpc.Error](err)
		return refused
	}
	return reflect.DeepEqual(items, first)
}
