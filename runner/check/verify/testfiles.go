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

// How many test files of a change get a class, and how many bytes of each are read.
const (
	maxTestFiles     = 100
	maxTestFileBytes = 1 << 20
)

// tests are the changed files that match verify_tests.
type tests struct {
	changedTests  []testsource.File // new or changed files of tests
	movedTests    []testsource.File // as the base has them elsewhere
	unjudgedCount int               // beyond maxTestFiles
	overlayPaths  []string          // paths of the change's side, of data and of what it removed too
	baseTests     []testsource.File // files of tests as the base has them, that the change altered or removed
	changedData   []string          // of the base that the change altered or removed
	restorePaths  []string          // paths that make the tests those of the base again
}

// testsOf finds the tests of a change.
func (c Checks) testsOf(change *gitops.ChangeSet) (t tests, err error) {
	from, to := map[string]bool{}, map[string]bool{} // contents on both sides
	for _, f := range change.Files {
		from[f.OldID], to[f.NewID] = f.OldMode != "", f.NewMode != ""
	}
	for _, f := range change.Files {
		fits, err := policy.MatchesPattern(c.Job.VerifyTests, f.Path)
		if err != nil {
			return t, fmt.Errorf("verify_tests: %w", err)
		}
		if !fits {
			continue
		}
		data, err := c.isData(f.Path)
		if err != nil {
			return t, err
		}
		if err := c.addTest(&t, f, data, from[f.NewID], f.NewMode == "" && to[f.OldID]); err != nil {
			return t, fmt.Errorf("read %q: %w", f.Path, err)
		}
	}
	return t, nil
}

// addTest adds a changed file. A file moved here unchanged has nothing to prove, and a file moved
// elsewhere is not missing.
func (c Checks) addTest(t *tests, f changeset.File, data, came, went bool) error {
	t.restorePaths = append(t.restorePaths, f.Path)
	if isRegular(f.OldMode) && f.NewID != f.OldID && !went {
		if err := c.addOld(t, f, data); err != nil {
			return err
		}
	}
	now := testsource.File{Path: f.Path, Link: f.NewMode != "" && !isRegular(f.NewMode)}
	if !now.Link {
		t.overlayPaths = append(t.overlayPaths, f.Path)
	}
	switch {
	case f.NewMode == "" || data:
		return nil
	case len(t.changedTests)+len(t.movedTests) == maxTestFiles:
		t.unjudgedCount++
		return nil
	case !now.Link:
		var err error
		if now.Text, err = c.textOf(f.NewID); err != nil {
			return err
		}
	}
	if came {
		t.movedTests = append(t.movedTests, now)
	} else {
		t.changedTests = append(t.changedTests, now)
	}
	return nil
}

func (c Checks) addOld(t *tests, f changeset.File, data bool) error {
	if data || len(t.baseTests) == maxTestFiles {
		t.changedData = append(t.changedData, f.Path)
		return nil
	}
	text, err := c.textOf(f.OldID)
	if err != nil {
		return err
	}
	t.baseTests = append(t.baseTests, testsource.File{Path: f.Path, Text: text})
	return nil
}

func (c Checks) textOf(id string) (string, error) {
	content, _, err := c.Workspace.Checkout().Blob(id)
	if err != nil {
		return "", err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, maxTestFileBytes))
	return string(raw), err
}

func isRegular(mode string) bool { return mode == "100644" || mode == "100755" }

// dataFolders and dataNames match data and helper files of tests.
var (
	dataFolders = []string{"testdata", "fixtures", "__fixtures__", "__snapshots__", "snapshots", "golden"}
	dataNames   = []string{"conftest.py", "__init__.py"}
	dataEndings = []string{
		".json", ".jsonl", ".yml", ".yaml", ".txt", ".md", ".csv", ".tsv", ".xml", ".html", ".css", ".snap", ".golden", ".out", ".png", ".jpg", ".jpeg", ".gif", ".svg",
		".pdf", ".zip", ".gz", ".tar", ".bin", ".dat", ".toml", ".ini", ".cfg", ".lock", ".sql", ".log", ".pem",
	}
)

// isData reports whether a file in verify_tests is test data. A job's own pattern with an ending
// decides itself.
func (c Checks) isData(name string) (bool, error) {
	folders := strings.Split(path.Dir(name), "/")
	looks := slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(dataFolders, f) }) ||
		slices.Contains(dataNames, path.Base(name)) || slices.Contains(dataEndings, strings.ToLower(path.Ext(name)))
	if !looks {
		return false, nil
	}
	var named []string
	for _, pattern := range c.Job.VerifyTests {
		if ending := path.Ext(pattern); len(ending) > 1 && !strings.ContainsAny(ending, "*?") && !slices.Contains(job.TestPatterns(), pattern) {
			named = append(named, pattern)
		}
	}
	if len(named) == 0 {
		return true, nil
	}
	fits, err := policy.MatchesPattern(named, name)
	return !fits, err
}
