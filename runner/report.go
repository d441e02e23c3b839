package runner

import (
	"errors"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
	"github.com/agent-ci/agent-ci/runner/transcript/report"
)

// Document is a run as Markdown.
func Document(runDir string) (string, error) {
	dir, err := openDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.close()
	f, err := dir.open(transcriptFile)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	view, err := transcript.Project(f, transcript.Cut{})
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	return body.Document(view), nil
}

// Report writes a run as an HTML page into its directory and gives the page's
// path.
func Report(runDir string) (string, error) {
	dir, err := openDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.close()
	if err := dir.report(); err != nil {
		return "", err
	}
	return dir.join(reportFile), nil
}

// report writes the page from the transcript as it lies on disk.
func (d *directory) report() (err error) {
	log, err := d.open(transcriptFile)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return d.replace(reportFile, func(w io.Writer) error { return report.Write(w, log) })
}
