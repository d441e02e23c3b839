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

// leakedSecrets returns the names of the secrets that the change adds: values of this run, and texts that
// look like tokens, unless removed lines have them.
func (c Case) leakedSecrets(ctx context.Context) ([]string, error) {
	patch, err := c.Record.Open(record.PatchFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	defer patch.Close()
	var added, removed bytes.Buffer
	if err := splitPatch(boundedfile.WithContext(ctx, patch), &added, &removed); err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	leaked, err := c.Record.Redactor().FindNew(boundedfile.WithContext(ctx, &added), boundedfile.WithContext(ctx, &removed))
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", record.PatchFile, err)
	}
	for _, f := range c.Change.Files {
		opens := []contentOpener{c.Checkout.OpenLFS} // the change has only a pointer to the content, but the content is published
		if f.Binary {                                // the patch has no readable content; one NUL byte makes a text binary for git
			opens = append(opens, func(_ context.Context, id string) (io.ReadCloser, int64, error) { return c.Checkout.Blob(id) })
		}
		for _, open := range opens {
			more, err := c.leakedIn(ctx, f, open)
			if err != nil {
				return nil, fmt.Errorf("search %q: %w", f.Path, err)
			}
			leaked = append(leaked, more...)
		}
	}
	slices.Sort(leaked)
	return slices.Compact(leaked), nil
}

// contentOpener opens a content by its blob's id. It returns nil if there is none.
type contentOpener func(ctx context.Context, id string) (io.ReadCloser, int64, error)

// leakedIn returns the secrets in a file's content that its content on the base does not have.
func (c Case) leakedIn(ctx context.Context, f changeset.File, open contentOpener) ([]string, error) {
	if !hasBlob(f.NewMode) {
		return nil, nil
	}
	now, err := openTwice(ctx, f.NewID, open)
	if now == nil || err != nil {
		return nil, err
	}
	defer now.Close()
	var before io.Reader
	if hasBlob(f.OldMode) {
		old, err := openTwice(ctx, f.OldID, open)
		if err != nil {
			return nil, err
		}
		if old != nil {
			defer old.Close()
			before = boundedfile.WithContext(ctx, old)
		}
	}
	return c.Record.Redactor().FindNew(boundedfile.WithContext(ctx, now), before)
}

// hasBlob reports whether a mode is that of a blob. A submodule has none.
func hasBlob(mode string) bool { return mode != "" && mode != "160000" }

// openTwice returns the content called id, followed by the same content without NUL bytes. A search then also
// finds secrets in UTF-16 text. If open returns nil, because there is no such content, openTwice does, too.
func openTwice(ctx context.Context, id string, open contentOpener) (io.ReadCloser, error) {
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

// twice reads a content that is opened two times.
type twice struct {
	io.Reader
	plain, again io.Closer
}

// Close closes both readers of the content.
func (t twice) Close() error { return errors.Join(t.plain.Close(), t.again.Close()) }

// withoutNULs reads without NUL bytes.
type withoutNULs struct{ io.Reader }

func (w withoutNULs) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	return len(slices.DeleteFunc(p[:n], func(c byte) bool { return c == 0 })), err
}

// splitPatch writes a patch's added and removed lines, without their signs. Headers count as added,
// because the file names in them are part of a change.
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
