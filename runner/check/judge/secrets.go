package judge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
)

// leakedSecrets names the secrets that the change adds: values of this run, and
// what has the shape of a token and did not stand in what the change takes away.
func (c Case) leakedSecrets(ctx context.Context) ([]string, error) {
	patch, err := c.Record.Open(record.PatchFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	defer patch.Close()
	var added, removed bytes.Buffer
	if err := splitPatch(boundedfile.Until(ctx, patch), &added, &removed); err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	leaked, err := c.Record.Redactor().FindNew(boundedfile.Until(ctx, &added), boundedfile.Until(ctx, &removed))
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", record.PatchFile, err)
	}
	for _, f := range c.Change.Files {
		more, err := c.leakedInBinary(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("search %q: %w", f.Path, err)
		}
		leaked = append(leaked, more...)
		if more, err = c.leakedInLFS(ctx, f); err != nil {
			return nil, fmt.Errorf("search %q: %w", f.Path, err)
		}
		leaked = append(leaked, more...)
	}
	slices.Sort(leaked)
	return slices.Compact(leaked), nil
}

// leakedInBinary names the secrets that a binary file brings: a patch has its
// content packed, or not at all. One NUL makes any text such a file.
func (c Case) leakedInBinary(ctx context.Context, f changeset.File) ([]string, error) {
	if !f.Binary {
		return nil, nil
	}
	return c.leakedIn(ctx, f, func(_ context.Context, id string) (io.ReadCloser, int64, error) { return c.Blob(id) })
}

// leakedInLFS names the secrets that the content of a Git LFS file brings: the change has its pointer alone,
// and the content is published with it.
func (c Case) leakedInLFS(ctx context.Context, f changeset.File) ([]string, error) {
	if c.Kept == nil {
		return nil, nil
	}
	return c.leakedIn(ctx, f, c.Kept)
}

// opener opens a content; nil for none.
type opener func(ctx context.Context, id string) (io.ReadCloser, int64, error)

// leakedIn names the secrets that the content of a file brings.
func (c Case) leakedIn(ctx context.Context, f changeset.File, open opener) ([]string, error) {
	if !hasBlob(f.NewMode) {
		return nil, nil
	}
	now, err := bothReadings(ctx, f.NewID, open)
	if now == nil || err != nil {
		return nil, err
	}
	defer now.Close()
	if !hasBlob(f.OldMode) {
		return c.Record.Redactor().FindNew(boundedfile.Until(ctx, now), nil)
	}
	before, err := bothReadings(ctx, f.OldID, open)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return c.Record.Redactor().FindNew(boundedfile.Until(ctx, now), nil)
	}
	defer before.Close()
	return c.Record.Redactor().FindNew(boundedfile.Until(ctx, now), boundedfile.Until(ctx, before))
}

// hasBlob says whether a path of that mode has a content: a submodule has none.
func hasBlob(mode string) bool { return mode != "" && mode != "160000" }

// bothReadings gives a content as it is, and again without NULs, which stand between
// the letters of a text in UTF-16. It is nil where there is none.
func bothReadings(ctx context.Context, id string, open opener) (io.ReadCloser, error) {
	plain, _, err := open(ctx, id)
	if plain == nil || err != nil {
		return nil, err
	}
	again, _, err := open(ctx, id)
	if err == nil && again == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return twice{io.MultiReader(plain, strings.NewReader("\n"), withoutNULs{again}), plain, again}, nil
}

type twice struct {
	io.Reader
	plain, again io.Closer
}

func (t twice) Close() error { return errors.Join(t.plain.Close(), t.again.Close()) }

type withoutNULs struct{ io.Reader }

func (w withoutNULs) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	return len(slices.DeleteFunc(p[:n], func(c byte) bool { return c == 0 })), err
}

// splitPatch writes the lines that a patch adds and takes away, without their
// signs. Headers count as added: names of files are part of a change.
func splitPatch(patch io.Reader, added, removed io.Writer) error {
	lines := bufio.NewReader(patch)
	for {
		line, err := lines.ReadString('\n')
		to := added
		switch {
		case strings.HasPrefix(line, "-"):
			line, to = line[1:], removed
		case strings.HasPrefix(line, "+"):
			line = line[1:]
		case strings.HasPrefix(line, " "):
			to = io.Discard
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
