package record

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/report"
)

// RenderDocument returns a run as Markdown.
func RenderDocument(runDir string) (string, error) {
	dir, err := OpenDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	log, err := dir.Open(TranscriptFile)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	defer log.Close()
	view, err := transcript.FoldWithTexts(log)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	return body.Document(view), nil
}

// WriteReport writes a run as an HTML page into its directory and returns the page's path.
func WriteReport(runDir string) (string, error) {
	dir, err := OpenDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := dir.WriteReport(context.Background()); err != nil {
		return "", err
	}
	return dir.Join(ReportFile), nil
}

// WriteReport writes the page from the transcript on disk. It stops when ctx ends, because a transcript of a
// gigabyte takes minutes.
func (d *Directory) WriteReport(ctx context.Context) (err error) {
	log, err := d.Open(TranscriptFile)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	bounded := struct {
		io.Reader
		io.Seeker
	}{boundedfile.WithContext(ctx, log), log}
	return d.Replace(ReportFile, func(w io.Writer) error { return report.Write(w, bounded) })
}
