package report

import (
	"bufio"
	"fmt"
	"io"

	g "maragu.dev/gomponents"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// Write reads a transcript twice from its start and writes an HTML page. It cuts the longest texts,
// so that a page with up to 5,000 events has at most 6 MB. In memory it keeps numbers of the first
// pass and unfinished calls of the second. The page mentions an incomplete last line and damaged events. A
// line that is no event is an error.
func Write(w io.Writer, log io.ReadSeeker) error {
	first, err := survey(log)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 16<<10)
	entries := g.NodeFunc(func(w io.Writer) error { return first.writeEntries(w, log) })
	if err := first.page(entries).Render(out); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// survey is the first pass. It returns everything but the timeline, and the limit of texts.
func survey(log io.ReadSeeker) (*overview, error) {
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	sizes := &textSizes{}
	first := &overview{Timeline: sections.Timeline{Patches: map[string][]int64{}, Diffs: map[string]string{}}}
	entries := newAssembler(nil, sizes.record, nil, first.countEntry)
	view, err := transcript.FoldEvents(log, func(v *transcript.View, e transcript.Event) error {
		entries.view = v
		entries.add(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	entries.releaseAll()
	first.View = view
	page := pageBytes
	if view.Change != nil && view.Change.Diff != "" {
		page -= filesBytes
	}
	first.limit = sizes.limit(page, first.entries)
	first.unfinished = entries.openEvents
	return first, nil
}

// writeEntries is the second pass. It reads as many events as the first pass, and writes each entry
// as soon as it is complete.
func (o *overview) writeEntries(w io.Writer, log io.ReadSeeker) error {
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	var writeErr error
	entries := newAssembler(o.View, fixedLimit(o.limit), o.unfinished, func(e *entry) {
		if writeErr == nil {
			writeErr = e.node().Render(w)
		}
	})
	remaining := o.View.EventCount
	for e, err := range transcript.Read(log) {
		if err != nil {
			return err
		}
		if remaining == 0 {
			break
		}
		remaining--
		entries.add(e)
	}
	entries.releaseAll()
	return writeErr
}
