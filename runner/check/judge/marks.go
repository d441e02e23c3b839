package judge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// refuseConflictMarkers refuses a change that adds conflict markers.
func (c Case) refuseConflictMarkers(ctx context.Context) error {
	var left []string
	for _, f := range c.Change.Files {
		found, err := c.addsMarkers(ctx, f)
		if err != nil {
			return fmt.Errorf("look for marks of conflicts in %q: %w", f.Path, err)
		}
		if found {
			left = append(left, f.Path)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.Conflict, "marks_left",
		"Conflict marks are left in %s; merge the two sides there and remove the marks.", markdown.SomeFiles(left))
}

// addsMarkers reports whether a changed file has more conflict markers than before.
func (c Case) addsMarkers(ctx context.Context, f changeset.File) (bool, error) {
	if f.Binary || !hasBlob(f.NewMode) {
		return false, nil
	}
	now, err := c.countMarkers(ctx, f.NewID)
	if err != nil {
		return false, err
	}
	if now == 0 || !hasBlob(f.OldMode) {
		return now > 0, nil
	}
	before, err := c.countMarkers(ctx, f.OldID)
	return now > before, err
}

// countMarkers counts the conflict markers in a blob. A line that is longer than the buffer comes in parts, and only
// its first part can be a marker.
func (c Case) countMarkers(ctx context.Context, id string) (count int, err error) {
	content, _, err := c.Checkout.Blob(id)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	in := bufio.NewReader(boundedfile.WithContext(ctx, content))
	atLineStart := true
	for {
		part, err := in.ReadSlice('\n')
		if atLineStart && gitops.IsMarker(strings.TrimRight(string(part), "\r\n")) {
			count++
		}
		lineContinues := errors.Is(err, bufio.ErrBufferFull)
		atLineStart = !lineContinues
		switch {
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil && !lineContinues:
			return count, err
		}
	}
}
