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
	asked := map[string]bool{}
	var first []T
	for cursor := ""; len(asked) < maxPages; {
		asked[cursor] = true
		items, next, err := fetch(cursor)
		switch {
		case cursor == emptyCursor && meansEnd(items, first, err):
			return nil
		case err != nil:
			return err
		case next != "" && next != emptyCursor && asked[next]:
			return &endlessError{fmt.Sprintf("the cursor %q came again", word(next))}
		}
		if err := take(items); err != nil {
			return err
		}
		if next == "" || asked[next] { // emptyCursor asked twice also ends the list
			return nil
		}
		if cursor == "" {
			first = items
		}
		cursor = next
	}
	return &endlessError{fmt.Sprintf("it has more than %d pages", maxPages)}
}

// meansEnd reports whether a server uses an empty cursor for the end of a list. Asked with that cursor,
// such a server repeats the first page or refuses.
func meansEnd[T any](items, first []T, err error) bool {
	if err != nil {
		_, refused := errors.AsType[*jsonrpc.Error](err)
		return refused
	}
	return reflect.DeepEqual(items, first)
}
