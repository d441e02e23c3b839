package mcp

import (
	"fmt"
	"io"
)

// boundedBody is the body of an HTTP answer. It calls fail if the body has more than limit bytes.
type boundedBody struct {
	body             io.ReadCloser
	remaining, limit int64
	release          func() // releases the request's resources
	fail             func(error)
}

// Read reads up to the limit. If the body then has a further byte, it calls fail and returns an error.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.remaining <= 0 {
		if n, err := b.body.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		err := fmt.Errorf("the answer has more than %d MiB", b.limit>>20)
		b.fail(err)
		return 0, err
	}
	if int64(len(into)) > b.remaining {
		into = into[:b.remaining]
	}
	n, err := b.body.Read(into)
	b.remaining -= int64(n)
	return n, err
}

// Close closes the body and releases the request's resources.
func (b *boundedBody) Close() error {
	err := b.body.Close()
	b.release()
	return err
}
