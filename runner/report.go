package runner

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// Document is a run as Markdown.
func Document(runDir string) (string, error) {
	dir, err := openDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.close()
	f, err := dir.root.Open(transcriptFile)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	view, err := transcript.ProjectWhole(f)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	return transcript.Markdown(view), nil
}

// CheckChain gives the end of a run's chain, or says where the transcript is
// not as it was written.
func CheckChain(runDir string) (string, error) {
	dir, err := openDirectory(runDir)
	if err != nil {
		return "", err
	}
	defer dir.close()
	r := &run{dir: dir}
	return r.checkChain()
}
