package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/agent-ci/agent-ci/policy/filetime"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Bounds of the search for a check's JUnit reports.
const (
	maxReports       = 500
	maxSearchedPaths = 100_000 // files and folders
)

// reportFile returns the name of the file with a check's joined reports, for the check's log.
func reportFile(log string) string { return strings.TrimSuffix(log, ".log") + ".junit.xml" }

// foundReports are JUnit reports in a check's tree, by path.
type foundReports map[string]fs.FileInfo

// findReports returns the reports below root that match the check's pattern. A failing search is a warning.
func (c Checks) findReports(root *os.Root, check job.VerifyCheck) foundReports {
	looked := 0
	files := boundedFS{root.FS().(readDirFS), func() error {
		if looked++; looked > maxSearchedPaths {
			return errors.New("there are too many files to look through")
		}
		return nil
	}}
	found := foundReports{}
	err := doublestar.GlobWalk(files, path.Join(c.Job.Repository.Path, check.JUnit), func(name string, entry fs.DirEntry) error {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() {
			found[name] = info
		}
		if len(found) > maxReports {
			return fmt.Errorf("there are more than %d", maxReports)
		}
		return nil
	}, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
	if err != nil {
		c.Record.Warn("junit", "Reports of %s (%s) can't be found: %v.", check.Name, check.JUnit, err)
	}
	return found
}

// reportsIn returns a check's tree and the reports in it. Both are nil if the check has no tree or names no reports.
func (c Checks) reportsIn(place confine.Place, check job.VerifyCheck) (*os.Root, foundReports, error) {
	if check.JUnit == "" {
		return nil, nil, nil
	}
	root, err := os.OpenRoot(c.Sandboxes.ChangesFolder(place))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return root, c.findReports(root, check), nil
}

// reportsBefore returns the reports that exist before a check.
func (c Checks) reportsBefore(script confine.Script, check job.VerifyCheck) (foundReports, error) {
	c.Record.Remove(reportFile(script.Log)) // left by a killed run
	root, found, err := c.reportsIn(script.Place, check)
	if root != nil {
		root.Close()
	}
	if len(found) > 0 {
		filetime.Mark() // a report that the check writes again gets another time
	}
	return found, err
}

// saveReports saves a check's new reports, joined in one file, because its tree will be removed.
// Unreadable reports are a warning.
func (c Checks) saveReports(script confine.Script, check job.VerifyCheck, before foundReports) error {
	root, now, err := c.reportsIn(script.Place, check)
	if err != nil || root == nil {
		return err
	}
	defer root.Close()
	var all []byte
	var unread []error
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, is := before[name], now[name]
		isOld := was != nil && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
		if isOld {
			continue
		}
		raw, err := c.readReport(root, name, testresults.MaxJUnit-len(all)-len(reportsUnread))
		if err != nil {
			unread = append(unread, err)
			continue
		}
		if len(all) > 0 {
			all = append(all, '\n')
		}
		all = append(all, raw...)
	}
	if len(unread) > 0 {
		c.Record.Warn("junit", "Of the reports of %s, %d can't be read: %v.", check.Name, len(unread), unread[0])
	}
	if len(all) == 0 {
		return nil
	}
	if len(unread) > 0 {
		all = append(all, reportsUnread...)
	}
	return c.Record.Write(reportFile(script.Log), all)
}

// reportsUnread ends the joined reports if some could not be read.
const reportsUnread = "\n<!--" + testresults.Unread + "-->\n"

// readReport reads a JUnit report and redacts it. It fails if the report is longer than maxBytes,
// before or after that, or is no JUnit.
func (c Checks) readReport(root *os.Root, name string, maxBytes int) ([]byte, error) {
	raw, err := boundedfile.ReadIn(root, name, int64(max(0, maxBytes)))
	if err != nil {
		return nil, err
	}
	if raw = []byte(c.Record.Redact(string(raw))); len(raw) > maxBytes {
		return nil, fmt.Errorf("%s: it is longer than %d bytes without its secrets", name, maxBytes)
	}
	if _, err := testresults.ReadJUnit(bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return raw, nil
}

// readDirFS is what doublestar needs of a file system.
type readDirFS interface {
	fs.ReadDirFS
	fs.StatFS
}

// boundedFS counts each read folder and examined file. An error of count stops the search.
type boundedFS struct {
	readDirFS
	count func() error
}

func (c boundedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := c.count(); err != nil {
		return nil, err
	}
	return c.readDirFS.ReadDir(name)
}

func (c boundedFS) Stat(name string) (fs.FileInfo, error) {
	if err := c.count(); err != nil {
		return nil, err
	}
	return c.readDirFS.Stat(name)
}

// resultsFromReports returns the test results in a check's saved reports, with relative paths, or nil.
func (c Checks) resultsFromReports(check job.VerifyCheck, log string) *testresults.Results {
	if check.JUnit == "" || !c.Record.Has(reportFile(log)) {
		return nil
	}
	raw, err := c.Record.Read(reportFile(log))
	var results *testresults.Results
	if err == nil {
		results, err = testresults.ReadJUnit(strings.NewReader(c.relativePaths(string(raw))))
	}
	if err != nil {
		c.Record.Warn("junit", "The reports of %s can't be read: %v.", check.Name, err)
		return nil
	}
	return results
}
