package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
)

// ChainError names the first altered event of a log.
type ChainError struct {
	position
	err error // what does not fit
}

type position struct {
	Line int
	Seq  int64 // as the line says; 0 where it says none
	Type Type
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("transcript line %d (event %d, %s) is not as it was written: %v", e.Line, e.Seq, e.Type, e.err)
}

func (e *ChainError) Unwrap() error { return e.err }

// VerifyChain verifies that the events of a log follow each other without a gap, each with the
// digest of the line before. It returns the chain's head, equal to Log.Head after the last event.
// Only the head reveals a changed last line or missing lines at the end.
//
// The error is a *ChainError for a broken chain. A log with an incomplete last line returns the head of
// its complete lines and a *TornError.
func VerifyChain(r io.Reader) (head string, err error) {
	c, err := followChain(r)
	if err != nil && !errors.As(err, new(*TornError)) {
		return "", err
	}
	return c.head, err
}

// followChain is VerifyChain that returns the whole state.
func followChain(r io.Reader) (*chain, error) {
	c := &chain{head: Genesis}
	for line, err := range Lines(r) {
		if err != nil {
			return c, cmp.Or(c.unresolvedError(), err)
		}
		if err := c.add(line); err != nil {
			return c, err
		}
	}
	return c, c.unresolvedError()
}

// chain follows the lines of a log. A wrong digest means that one of two lines was changed; the
// next line decides which.
type chain struct {
	head  string
	last  position
	doubt *doubt
}

// doubt is a line with a wrong digest of the line before.
type doubt struct{ before, line position }

// add checks the next line against the chain and returns a *ChainError for an altered one. A wrong digest
// only raises a doubt, which the next line decides.
func (c *chain) add(l Line) error {
	e, err := l.Event()
	here := position{l.number, e.Seq, e.Type}
	switch want := c.last.Seq + 1; {
	case err != nil:
		return cmp.Or(c.unresolvedError(), here.alteredError(err))
	case c.doubt != nil && e.Prev == c.head: // this line confirms the doubtful one
		return c.unresolvedError()
	case c.doubt != nil:
		return c.doubt.line.alteredError(errors.New("the digest that it states is not that of the line before"))
	case e.Seq != want:
		return here.alteredError(fmt.Errorf("its number is %d, the chain is at %d", e.Seq, want))
	}
	if e.Prev != c.head {
		c.doubt = &doubt{before: c.last, line: here}
	}
	c.head, c.last = l.Digest(), here
	return nil
}

// unresolvedError returns the error of an unresolved doubt: it blames the line before.
func (c *chain) unresolvedError() error {
	if c.doubt == nil {
		return nil
	}
	if c.doubt.before.Line == 0 {
		return c.doubt.line.alteredError(errors.New("it does not begin a chain"))
	}
	return c.doubt.before.alteredError(errors.New("its digest is not the one that the next line states"))
}

func (p position) alteredError(err error) error { return &ChainError{p, err} }
