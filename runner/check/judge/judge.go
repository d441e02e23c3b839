package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Case is a change to judge.
type Case struct {
	Record   *record.Record // its directory has the change as a patch
	Job      *job.Job
	Checkout Checkout
	Change   *gitops.ChangeSet
	// RunnerPaths returns paths that the runner itself wrote; they are not protected.
	RunnerPaths func(*gitops.ChangeSet) ([]string, error)
	// RepairedChange is the change of a pull request that this run repairs. A repair must not
	// change workflows. Nil for other runs.
	RepairedChange *gitops.ChangeSet
}

// Checkout has the contents of the change.
type Checkout interface {
	Blob(id string) (content io.ReadCloser, size int64, err error)
	// OpenLFS opens the content of a Git LFS file by its pointer's blob. For another blob, content is nil.
	OpenLFS(ctx context.Context, id string) (content io.ReadCloser, size int64, err error)
	// Unfiltered returns changed files whose git filter is missing.
	Unfiltered(context.Context, *gitops.ChangeSet) ([]gitops.Unfiltered, error)
}

// Judge returns an outcome.Stop if the job's policy or limits refuse the change. It warns about
// remarkable parts.
func (c Case) Judge(ctx context.Context) error {
	if err := c.Refusal(ctx); err != nil {
		return err
	}
	return c.warn(ctx)
}

// Refusal returns why the change may not be published, or nil. Unlike Judge, it does not warn.
func (c Case) Refusal(ctx context.Context) error {
	if err := c.refuseUnpublished(); err != nil {
		return err
	}
	if err := c.refuseChangedWorkflows(); err != nil {
		return err
	}
	if err := c.limitSize(ctx); err != nil {
		return err
	}
	leaked, err := c.leakedSecrets(ctx)
	if err != nil {
		return err
	}
	if len(leaked) > 0 {
		return outcome.Stopf(outcome.PolicyViolation, "secret",
			"The change contains a secret (%s) and is not published; rotate it if others could see the checkout.", strings.Join(leaked, ", "))
	}
	if err := c.refuseConflictMarkers(ctx); err != nil {
		return err
	}
	return c.refuseProtected()
}

// refuseUnpublished refuses every change if the job publishes only feedback.
func (c Case) refuseUnpublished() error {
	if !c.Job.Publish.IsFeedback() || c.Change.Empty() {
		return nil
	}
	return outcome.Stopf(outcome.PolicyViolation, "files_changed",
		"The agent changed files (%s), and the job publishes no change (publish.as: %s); nothing was published.",
		markdown.SomeFiles(changeset.Paths(c.Change.Files)), c.Job.Publish.As)
}

// limitSize refuses a change that exceeds the job's limits.
func (c Case) limitSize(ctx context.Context) error {
	l, change := c.Job.Limits, c.Change
	if change.Empty() {
		return nil
	}
	lines := change.Insertions + change.Deletions
	switch {
	case l.DiffFiles > 0 && len(change.Files) > l.DiffFiles:
		return outcome.Stopf(outcome.BudgetExceeded, "diff_files",
			"The change touches %d files, limits.diff_files allows %d; raise it or give a smaller task.", len(change.Files), l.DiffFiles)
	case l.DiffLines > 0 && lines > l.DiffLines:
		return outcome.Stopf(outcome.BudgetExceeded, "diff_lines",
			"The change has %d lines, limits.diff_lines allows %d; raise it or give a smaller task.", lines, l.DiffLines)
	case l.FileSize > 0:
		return c.limitFileSizes(ctx)
	}
	return nil
}

// limitFileSizes refuses a change with a new file content above the job's limit. Content that a changed file
// had on the base is not new. The size of a Git LFS file is that of its content.
func (c Case) limitFileSizes(ctx context.Context) error {
	isOnBase := map[string]bool{} // contents on the base, by ID
	for _, f := range c.Change.Files {
		isOnBase[f.OldID] = true
	}
	for _, f := range c.Change.Files {
		if !hasBlob(f.NewMode) || isOnBase[f.NewID] {
			continue
		}
		size, err := c.fileSize(ctx, f.NewID)
		if err != nil {
			return fmt.Errorf("measure %q: %w", f.Path, err)
		}
		if size > c.Job.Limits.FileSize {
			return outcome.Stopf(outcome.BudgetExceeded, "file_size",
				"The file %q of the change has %d bytes, limits.file_size allows %d; raise it, or keep the file out of the change.", f.Path, size, c.Job.Limits.FileSize)
		}
	}
	return nil
}

// fileSize returns the size of a blob in bytes, or of the Git LFS content that it points to.
func (c Case) fileSize(ctx context.Context, id string) (int64, error) {
	content, size, err := c.Checkout.Blob(id)
	if err == nil {
		err = content.Close()
	}
	if err != nil {
		return 0, err
	}
	lfs, lfsSize, err := c.Checkout.OpenLFS(ctx, id)
	if lfs == nil {
		return size, err
	}
	return lfsSize, errors.Join(err, lfs.Close())
}

// concernOf maps problems of a change to concerns of the policy.
var concernOf = map[gitops.ProblemKind]policy.Concern{
	gitops.ProblemRepository: policy.ConcernNestedGit,
	gitops.ProblemName:       policy.ConcernName,
	gitops.ProblemSubmodule:  policy.ConcernSubmodule,
	gitops.ProblemLink:       policy.ConcernSymlinkOut,
	gitops.ProblemUnreadable: policy.ConcernUnreadable,
	gitops.ProblemLarge:      policy.ConcernLarge,
	gitops.ProblemTooDeep:    policy.ConcernTooDeep,
}

// ownFolder is protected from agents, whatever the job protects.
const ownFolder = ".agent-ci"

// Verdict applies the policy to the changed files, except the paths in written, which the runner wrote.
func Verdict(p job.Policy, change *gitops.ChangeSet, written []string) (policy.Verdict, error) {
	treatments := map[policy.Concern]policy.Treatment{}
	for concern, treatment := range map[policy.Concern]string{
		policy.ConcernProtected: p.Change.Protected, policy.ConcernSubmodule: p.Change.Submodules, policy.ConcernNestedGit: p.Change.NestedGit,
		policy.ConcernSymlinkOut: p.Change.SymlinksOut, policy.ConcernSymlink: p.Change.Symlinks,
		policy.ConcernExecutable: p.Change.Executables, policy.ConcernLockfile: p.Change.Lockfiles,
	} {
		treatments[concern] = policy.Treatment(treatment)
	}
	return policy.Changes{Protect: append(slices.Clone(p.Protect), ownFolder+"/**"), Treat: treatments}.Judge(changedFiles(change, written))
}

// verdict returns the policy's verdict, without the paths that the runner wrote.
func (c Case) verdict() (policy.Verdict, error) {
	written, err := c.RunnerPaths(c.Change)
	if err != nil {
		return policy.Verdict{}, err
	}
	return Verdict(c.Job.Policy, c.Change, written)
}

// plainFile is the mode of an ordinary file.
const plainFile = "100644"

// changedFiles returns the files for the policy to judge, with their concerns. Changed files come
// first, then other paths with a problem. It omits paths in written whose mode did not change.
func changedFiles(change *gitops.ChangeSet, written []string) []policy.ChangedFile {
	concerns := map[string][]policy.Concern{} // by path, of the paths that are not in files yet
	for _, p := range change.Problems {
		concerns[p.Path] = append(concerns[p.Path], concernOf[p.Kind])
	}
	files := make([]policy.ChangedFile, 0, len(change.Files))
	for _, f := range change.Files {
		keepsMode := f.NewMode == cmp.Or(f.OldMode, plainFile)
		if keepsMode && slices.Contains(written, f.Path) {
			continue
		}
		if top, _, _ := strings.Cut(f.Path, "/"); strings.EqualFold(top, ownFolder) { // some file systems ignore case
			concerns[f.Path] = append(concerns[f.Path], policy.ConcernOwn)
		}
		files = append(files, policy.ChangedFile{Path: f.Path, OldMode: f.OldMode, NewMode: f.NewMode, Found: concerns[f.Path]})
		delete(concerns, f.Path)
	}
	for _, p := range change.Problems {
		if rest, hasSome := concerns[p.Path]; hasSome {
			files = append(files, policy.ChangedFile{Path: p.Path, Found: rest})
			delete(concerns, p.Path)
		}
	}
	return files
}

// RefuseExcludedOnly returns an outcome.Stop if the agent's only work is in files that no change can contain.
func (c Case) RefuseExcludedOnly() error {
	if c.Change == nil || len(c.Change.Problems) == 0 {
		return nil
	}
	return c.refuseProtected()
}

// refuseProtected refuses a change with a file that the policy fails or protects.
func (c Case) refuseProtected() error {
	verdict, err := c.verdict()
	if err != nil {
		return err
	}
	var fails []string
	for _, f := range verdict.Fail {
		fails = append(fails, f.String()+exclusionReason(c.Change, f))
	}
	for _, path := range verdict.Drop { // not reverted, because the change did not come from this checkout
		fails = append(fails, fmt.Sprintf("%q is protected by policy.protect", path))
	}
	if len(fails) > 0 {
		return outcome.Stopf(outcome.PolicyViolation, "change", "The change may not be published: %s.", strings.Join(fails, "; "))
	}
	return nil
}

// warn warns about remarkable parts of a change.
func (c Case) warn(ctx context.Context) error {
	verdict, err := c.verdict()
	if err != nil {
		return err
	}
	const maxWarnings = 20
	for _, f := range verdict.Warn[:min(len(verdict.Warn), maxWarnings)] {
		c.Record.Warn("change", "%s.", f)
	}
	if more := len(verdict.Warn) - maxWarnings; more > 0 {
		c.Record.Warn("change", "%d more files have something that policy.change warns about.", more)
	}
	return c.warnOfFilters(ctx)
}

// warnOfFilters warns of files that are committed unfiltered because their filter is missing.
func (c Case) warnOfFilters(ctx context.Context) error {
	missing, err := c.Checkout.Unfiltered(ctx, c.Change)
	if err != nil {
		return err
	}
	for _, m := range missing {
		configure := "configure filter." + m.Filter
		if m.Filter == "lfs" {
			configure = "install Git LFS and run `git lfs install` (actions/checkout: lfs: true)"
		}
		c.Record.Warn("filter_missing", "%s: .gitattributes asks for the filter %s, which git's configuration does not have, so that git commits the content as it is; %s before the run.",
			markdown.SomeFiles(m.Paths), m.Filter, configure)
	}
	return nil
}

// excludingProblems lists the problems that keep a file out of a change. Their details say why.
var excludingProblems = []gitops.ProblemKind{gitops.ProblemUnreadable, gitops.ProblemLarge, gitops.ProblemTooDeep}

// exclusionReason returns why a file is kept out of the change, as the end of a sentence, or "".
func exclusionReason(change *gitops.ChangeSet, f policy.Finding) string {
	for _, p := range change.Problems {
		if p.Path == f.Path && f.Concern == concernOf[p.Kind] && slices.Contains(excludingProblems, p.Kind) {
			return fmt.Sprintf(" (%s)", outcome.WithoutFullStop(errors.New(p.Detail)))
		}
	}
	return ""
}
