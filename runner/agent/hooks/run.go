package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
)

// most is how many bytes a hook may write, to standard output and to standard error.
const most = 64 << 10

// said is what a hook said before it ended by itself.
type said struct {
	output, errors []byte
	status         int
}

// errTooMuch says that a hook wrote more than most bytes.
var errTooMuch = fmt.Errorf("it wrote more than %d KiB", most>>10)

// start runs a program with input to its end, its time limit or its limit of output. An error
// says why there is no answer, for the end of a sentence about the hook; it is ctx's where that
// has ended.
func start(ctx context.Context, box *sandbox.Sandbox, c sandbox.Command, input []byte, limit time.Duration) (said, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var output, words bytes.Buffer
	status, err := attached.Run(limited, box.Start, c, attached.Streams{
		Input: bytes.NewReader(input), Output: attached.UpTo(&output, most, errTooMuch), Errors: attached.UpTo(&words, most, errTooMuch),
	})
	answer := said{output.Bytes(), words.Bytes(), status.ExitCode}
	switch {
	case errors.Is(err, sandbox.ErrNotStarted):
		return said{}, fmt.Errorf("it could not be started (%w)", err)
	case errors.Is(err, errTooMuch):
		return answer, err
	case ctx.Err() != nil:
		return answer, ctx.Err()
	case limited.Err() != nil:
		return answer, fmt.Errorf("it did not answer within %s", limit)
	case err != nil:
		return answer, err
	case status.Signal != "":
		return answer, fmt.Errorf("it was ended by the signal %s", status.Signal)
	}
	return answer, nil
}
