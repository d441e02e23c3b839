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
	added, err := countMarks(ctx, patch, "+")
	if err != nil {
		return fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	if added == 0 { // true for nearly all changes; then no file is read
		return nil
	}
	var left []string
	for _, f := range c.Change.Files {
		found, err := c.hasMark(ctx, f)
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

// hasMark reports whether a changed file has more conflict markers than before.
func (c Case) hasMark(ctx context.Context, f changeset.File) (bool, error) {
	if f.Binary || !hasBlob(f.NewMode) {
		return false, nil
	}
	now, err := c.marksOf(ctx, f.NewID)
	if err != nil || now == 0 || !hasBlob(f.OldMode) {
		return now > 0, err
	}
	before, err := c.marksOf(ctx, f.OldID)
	return now > before, err
}

func (c Case) marksOf(ctx context.Context, id string) (count int, err error) {
	content, _, err := c.Blob(id)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	return countMarks(ctx, content, "")
}

// countMarks counts the conflict markers in lines that begin with a prefix.
func countMarks(ctx context.Context, text io.Reader, prefix string) (count int, err error) {
	in := bufio.NewReader(boundedfile.WithContext(ctx, text))
	begins := true // the next part is the beginning of a line
	for {
		part, err := in.ReadSlice('\n')
		line, ours := strings.CutPrefix(strings.TrimRight(string(part), "\r\n"), prefix)
		if begins && ours && gitops.IsMarker(line) {
			count++
		}
		begins = !errors.Is(err, bufio.ErrBufferFull)
		switch {
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil && begins:
			return count, err
		}
	}
}
