package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// boundedBody is the body of an HTTP answer. It calls fail if the body has more bytes than it may.
type boundedBody struct {
	io.ReadCloser        // of http.MaxBytesReader
	release       func() // releases the request's resources
	fail          func(error)
}

// Read reads up to the limit. If the body then has a further byte, it calls fail and returns an error.
func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if tooLong, isTooLong := errors.AsType[*http.MaxBytesError](err); isTooLong {
		err = fmt.Errorf("the answer has more than %d MiB", tooLong.Limit>>20)
		b.fail(err)
	}
	return n, err
}

// Close closes the body and releases the request's resources.
func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}
