package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
)

// ChainError names the first event of a log that was altered.
type ChainError struct {
	position
	err       error // what is wrong
	isNoEvent bool  // the line is no event, and err names it
}

type position struct {
	Line int
	Seq  int64 // the number in the line; 0 if it has none
	Type Type
}

func (e *ChainError) Error() string {
	if e.isNoEvent {
		return e.err.Error()
	}
	return fmt.Sprintf("transcript line %d (event %d, %s) is not as it was written: %v", e.Line, e.Seq, e.Type, e.err)
}

func (e *ChainError) Unwrap() error { return e.err }

// VerifyChain verifies that a log's events follow each other without a gap, and that each has the
// digest of the line before. It returns the head of the chain, which equals Log.Head after the last
// event. Only a comparison of the head reveals a changed last line, or missing lines at the end.
//
// A broken chain is a *ChainError. If the last line is incomplete, VerifyChain returns the head of
// the complete lines and a *TornError.
func VerifyChain(r io.Reader) (head string, err error) {
	c, err := followChain(r)
	if err != nil && !errors.As(err, new(*TornError)) {
		return "", err
	}
	return c.head, err
}

// followChain is like VerifyChain, but returns the state of the chain. After a *TornError or *ChainError, that
// is the state before the faulty line. A doubt about an earlier line comes before the error of a later one.
func followChain(r io.Reader) (*chain, error) {
	c := &chain{head: Genesis}
	for line, err := range Lines(r) {
		if err != nil {
			return c, cmp.Or(c.unresolvedError(), err)
		}
		if err := c.checkNext(line); err != nil {
			return c, err
		}
	}
	return c, c.unresolvedError()
}

// chain follows the lines of a log. A wrong digest means that this line or the line before was
// altered. The next line decides which one.
type chain struct {
	head  string
	last  position
	doubt *doubt
}

// doubt is a line with a wrong digest of the line before it.
type doubt struct{ before, line position }

// checkNext checks the next line. It returns a *ChainError if that line, or an earlier one, was altered.
// If the line states a wrong digest, checkNext only sets c.doubt, and the next call decides.
func (c *chain) checkNext(l Line) error {
	e, err := l.Event()
	current := position{l.number, e.Seq, e.Type}
	statesDigest := e.Prev == c.head // the one of the line before
	switch wantSeq := c.last.Seq + 1; {
	case err != nil:
		return cmp.Or(c.unresolvedError(), error(&ChainError{position: current, err: err, isNoEvent: true}))
	case c.doubt != nil && statesDigest: // so the doubtful line is unaltered, and the line before that was altered
		return c.unresolvedError()
	case c.doubt != nil:
		return c.doubt.line.alteredError(errors.New("the digest that it states is not that of the line before"))
	case e.Seq != wantSeq:
		return current.alteredError(fmt.Errorf("its number is %d, the chain is at %d", e.Seq, wantSeq))
	}
	if !statesDigest {
		c.doubt = &doubt{before: c.last, line: current}
	}
	c.head, c.last = l.Digest(), current
	return nil
}

// unresolvedError returns the error for a doubt that no line has decided. It blames the line before
// the doubtful one.
func (c *chain) unresolvedError() error {
	if c.doubt == nil {
		return nil
	}
	if c.doubt.before.Line == 0 {
		return c.doubt.line.alteredError(errors.New("it does not begin a chain"))
	}
	return c.doubt.before.alteredError(errors.New("its digest is not the one that the next line states"))
}

// alteredError returns the error for an altered line at this position.
func (p position) alteredError(err error) error { return &ChainError{position: p, err: err} }
