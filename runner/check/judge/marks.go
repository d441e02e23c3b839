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
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// refuseConflictMarkers refuses a change that adds conflict markers.
func (c Case) refuseConflictMarkers(ctx context.Context) error {
	patch, err := c.Record.Open(record.PatchFile)
	if err != nil {
		return fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	defer patch.Close()
	added, err := countMarkers(ctx, patch, "+")
	if err != nil {
		return fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	if added == 0 { // true for nearly all changes; then no file is read
		return nil
	}
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
	now, err := c.countMarkersIn(ctx, f.NewID)
	if err != nil || now == 0 || !hasBlob(f.OldMode) {
		return now > 0, err
	}
	before, err := c.countMarkersIn(ctx, f.OldID)
	return now > before, err
}

// countMarkersIn counts the conflict markers in a blob.
func (c Case) countMarkersIn(ctx context.Context, id string) (count int, err error) {
	content, _, err := c.Blob(id)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	return countMarkers(ctx, content, "")
}

// countMarkers counts the conflict markers in lines that begin with prefix. The prefix is not part of the
// marker. A line that is longer than the buffer comes in parts, and only its first part can be a marker.
func countMarkers(ctx context.Context, text io.Reader, prefix string) (count int, err error) {
	in := bufio.NewReader(boundedfile.WithContext(ctx, text))
	atLineStart := true
	for {
		part, err := in.ReadSlice('\n')
		line, hasPrefix := strings.CutPrefix(strings.TrimRight(string(part), "\r\n"), prefix)
		if atLineStart && hasPrefix && gitops.IsMarker(line) {
			count++
		}
		atLineStart = !errors.Is(err, bufio.ErrBufferFull)
		switch {
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil && atLineStart:
			return count, err
		}
	}
}
