package record

import (
	"errors"
	"fmt"
	"io"

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
	f, err := dir.Open(TranscriptFile)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	view, err := transcript.FoldWithEntries(f, transcript.ExcerptLimits{})
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
	if err := dir.WriteReport(); err != nil {
		return "", err
	}
	return dir.Join(ReportFile), nil
}

// WriteReport writes the page from the transcript on disk.
func (d *Directory) WriteReport() (err error) {
	log, err := d.Open(TranscriptFile)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return d.Replace(ReportFile, func(w io.Writer) error { return report.Write(w, log) })
}
