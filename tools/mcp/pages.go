package mcp

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// endlessError reports an endless list.
type endlessError struct{ reason string }

func (e *endlessError) Error() string { return "the list has no end: " + e.reason }

// pages fetches all pages of a list and passes each to take. fetch returns the page at cursor, and the next
// cursor, which is "" at the end. Some servers mean the end by an empty cursor, emptyCursor here, so pages
// requests that page once to find out. It returns an *endlessError for any other repeated cursor, and for too
// many pages.
func pages[T any](fetch func(cursor string) (items []T, next string, err error), take func(items []T) error) error {
	requested := map[string]bool{}
	var first []T
	for cursor := ""; len(requested) < maxPages; {
		requested[cursor] = true
		items, next, err := fetch(cursor)
		if cursor == emptyCursor && endsAtEmptyCursor(items, first, err) {
			return nil
		}
		if err != nil {
			return err
		}
		isRepeated := next != "" && requested[next]
		if isRepeated && next != emptyCursor {
			return &endlessError{fmt.Sprintf("the cursor %q came again", oneLine(next))}
		}
		if err := take(items); err != nil {
			return err
		}
		if next == "" || isRepeated { // a repeated emptyCursor is the end
			return nil
		}
		if cursor == "" {
			first = items
		}
		cursor = next
	}
	return &endlessError{fmt.Sprintf("it has more than %d pages", maxPages)}
}

// endsAtEmptyCursor reports whether a server ends a list with an empty cursor. items and err are its answer to a
// request with that cursor: if it is the end, the server repeats the first page or refuses.
func endsAtEmptyCursor[T any](items, first []T, err error) bool {
	if err != nil {
		_, isRefusal := errors.AsType[*jsonrpc.Error](err)
		return isRefusal
	}
	return reflect.DeepEqual(items, first)
}
