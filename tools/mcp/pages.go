package mcp

import "errors"

var errEndless = errors.New("the list has no end")

func isEndless(err error) bool { return errors.Is(err, errEndless) }

// pages asks for one page after the other, by the cursor that the last one gave. A list that has
// too many, or comes back to one, has no end.
func pages(page func(cursor string) (next string, err error)) error {
	asked := map[string]bool{}
	for cursor := ""; len(asked) < mostPages; {
		asked[cursor] = true
		next, err := page(cursor)
		if err != nil || next == "" {
			return err
		}
		if asked[next] {
			return errEndless
		}
		cursor = next
	}
	return errEndless
}
