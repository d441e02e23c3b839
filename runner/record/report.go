package record

import (
	"errors"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/report"
)

// Document returns a run as Markdown.
func Document(runDir string) (string, error) {
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
	view, err := transcript.Project(f, transcript.ExcerptLimits{})
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	return body.Document(view), nil
}

// Report writes a run as an HTML page into its directory and returns the page's path.
func Report(runDir string) (string, error) {
	dir, err := OpenDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := dir.Report(); err != nil {
		return "", err
	}
	return dir.Join(ReportFile), nil
}

// Report writes the page from the transcript on disk.
func (d *Directory) Report() (err error) {
	log, err := d.Open(TranscriptFile)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return d.Replace(ReportFile, func(w io.Writer) error { return report.Write(w, log) })
}
