package verify

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// How many test files of a change are judged, and how many bytes of each are read.
const (
	maxTestFiles     = 100
	maxTestFileBytes = 1 << 20
)

// testFiles are the changed files that match verify_tests.
type testFiles struct {
	changedTests  []testsource.File // new or altered test files
	movedTests    []testsource.File // test files moved here unchanged
	unjudgedCount int               // test files beyond maxTestFiles
	overlayPaths  []string          // paths to copy from the change to the base for the proof, deleted ones and data included
	baseTests     []testsource.File // altered or deleted test files, as on the base
	changedData   []string          // altered or deleted test data of the base
	restorePaths  []string          // paths to restore from the base to get its tests
}

// testFilesOf returns the changed files that match verify_tests.
func (c Checks) testFilesOf(change *gitops.ChangeSet) (t testFiles, err error) {
	isOldContent, isNewContent := map[string]bool{}, map[string]bool{} // contents of all changed files, by ID
	for _, f := range change.Files {
		isOldContent[f.OldID], isNewContent[f.NewID] = f.OldMode != "", f.NewMode != "" // without a mode, there is no file
	}
	for _, f := range change.Files {
		fits, err := policy.MatchesPattern(c.Job.VerifyTests, f.Path)
		if err != nil {
			return t, fmt.Errorf("verify_tests: %w", err)
		}
		if !fits {
			continue
		}
		isData, err := c.isData(f.Path)
		if err != nil {
			return t, err
		}
		t.restorePaths = append(t.restorePaths, f.Path)
		isMovedAway := f.NewMode == "" && isNewContent[f.OldID] // another file has the content, so it is not missing
		if isRegular(f.OldMode) && f.NewID != f.OldID && !isMovedAway {
			err = c.addBaseVersion(&t, f, isData)
		}
		if err == nil {
			err = c.addVersion(&t, f, isData, isOldContent[f.NewID])
		}
		if err != nil {
			return t, fmt.Errorf("read %q: %w", f.Path, err)
		}
	}
	return t, nil
}

// addVersion adds the change's version of a changed file to t. isMovedHere means that another file had the content, so
// it proves nothing.
func (c Checks) addVersion(t *testFiles, f changeset.File, isData, isMovedHere bool) error {
	now := testsource.File{Path: f.Path, NotRegular: f.NewMode != "" && !isRegular(f.NewMode)}
	if !now.NotRegular {
		t.overlayPaths = append(t.overlayPaths, f.Path)
	}
	isDeleted := f.NewMode == ""
	if isDeleted || isData {
		return nil
	}
	if len(t.changedTests)+len(t.movedTests) == maxTestFiles {
		t.unjudgedCount++
		return nil
	}
	if !now.NotRegular {
		text, err := c.textOf(f.NewID)
		if err != nil {
			return err
		}
		now = testsource.NewFile(f.Path, text)
	}
	if isMovedHere {
		t.movedTests = append(t.movedTests, now)
	} else {
		t.changedTests = append(t.changedTests, now)
	}
	return nil
}

// addBaseVersion adds the base's version of a changed file to t.
func (c Checks) addBaseVersion(t *testFiles, f changeset.File, isData bool) error {
	if isData || len(t.baseTests) == maxTestFiles {
		t.changedData = append(t.changedData, f.Path)
		return nil
	}
	text, err := c.textOf(f.OldID)
	if err != nil {
		return err
	}
	t.baseTests = append(t.baseTests, testsource.NewFile(f.Path, text))
	return nil
}

// textOf returns the beginning of a blob, up to maxTestFileBytes.
func (c Checks) textOf(id string) (string, error) {
	content, _, err := c.Workspace.Checkout().Blob(id)
	if err != nil {
		return "", err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, maxTestFileBytes))
	return string(raw), err
}

// isRegular reports whether a git mode is that of a regular file.
func isRegular(mode string) bool { return mode == "100644" || mode == "100755" }

// These match data and helper files of tests.
var (
	dataFolders = []string{"testdata", "fixtures", "__fixtures__", "__snapshots__", "snapshots", "golden"}
	dataNames   = []string{"conftest.py", "__init__.py"}
	dataEndings = []string{
		".json", ".jsonl", ".yml", ".yaml", ".txt", ".md", ".csv", ".tsv", ".xml", ".html", ".css", ".snap", ".golden", ".out", ".png", ".jpg", ".jpeg", ".gif", ".svg",
		".pdf", ".zip", ".gz", ".tar", ".bin", ".dat", ".toml", ".ini", ".cfg", ".lock", ".sql", ".log", ".pem",
	}
)

// isData reports whether a file that verify_tests matches is test data. If a pattern of the job
// names its ending, the file is a test.
func (c Checks) isData(name string) (bool, error) {
	folders := strings.Split(path.Dir(name), "/")
	looksLikeData := slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(dataFolders, f) }) ||
		slices.Contains(dataNames, path.Base(name)) || slices.Contains(dataEndings, strings.ToLower(path.Ext(name)))
	if !looksLikeData {
		return false, nil
	}
	var ownPatterns []string // of the job, with an ending
	for _, pattern := range c.Job.VerifyTests {
		ending := path.Ext(pattern)
		hasEnding := len(ending) > 1 && !strings.ContainsAny(ending, "*?")
		if hasEnding && !slices.Contains(job.TestPatterns(), pattern) {
			ownPatterns = append(ownPatterns, pattern)
		}
	}
	if len(ownPatterns) == 0 {
		return true, nil
	}
	isTest, err := policy.MatchesPattern(ownPatterns, name)
	return !isTest, err
}
