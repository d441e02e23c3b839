package runner

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// concernOf is what the policy calls a problem of a change.
var concernOf = map[gitops.ProblemKind]policy.Concern{
	gitops.ProblemRepository: policy.ConcernNestedGit,
	gitops.ProblemName:       policy.ConcernName,
	gitops.ProblemSubmodule:  policy.ConcernSubmodule,
	gitops.ProblemLink:       policy.ConcernSymlinkOut,
	gitops.ProblemUnreadable: policy.ConcernUnreadable,
	gitops.ProblemLarge:      policy.ConcernLarge,
	gitops.ProblemTooDeep:    policy.ConcernTooDeep,
}

// verdict is the policy's judgement of what a change touches.
func (r *run) verdict(changes *gitops.ChangeSet) (policy.Verdict, error) {
	p, treat := r.job.Policy, map[policy.Concern]policy.Treatment{}
	for concern, treatment := range map[policy.Concern]string{
		policy.ConcernProtected: p.Change.Protected, policy.ConcernSubmodule: p.Change.Submodules, policy.ConcernNestedGit: p.Change.NestedGit,
		policy.ConcernSymlinkOut: p.Change.SymlinksOut, policy.ConcernSymlink: p.Change.Symlinks,
		policy.ConcernExecutable: p.Change.Executables, policy.ConcernLockfile: p.Change.Lockfiles,
	} {
		treat[concern] = policy.Treatment(treatment)
	}
	return policy.Changes{Protect: p.Protect, Drop: p.OnProtected == "drop", Treat: treat}.Judge(changedFiles(changes))
}

// changedFiles are the facts of a change that the policy judges.
func changedFiles(changes *gitops.ChangeSet) []policy.ChangedFile {
	found := map[string][]policy.Concern{}
	for _, p := range changes.Problems {
		found[p.Path] = append(found[p.Path], concernOf[p.Kind])
	}
	files := make([]policy.ChangedFile, 0, len(changes.Files))
	for _, f := range changes.Files {
		files = append(files, policy.ChangedFile{Path: f.Path, OldMode: f.OldMode, NewMode: f.NewMode, Found: found[f.Path]})
		delete(found, f.Path)
	}
	for _, p := range changes.Problems { // of paths that are not part of the change
		if concerns, left := found[p.Path]; left {
			files = append(files, policy.ChangedFile{Path: p.Path, Found: concerns})
			delete(found, p.Path)
		}
	}
	return files
}

// withoutDropped gives the change without protected paths where the job wants
// them left out. They are put back in the checkout, too.
func (r *run) withoutDropped(ctx context.Context, changes *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	verdict, err := r.verdict(changes)
	r.dropped = verdict.Drop
	if err != nil || len(verdict.Drop) == 0 {
		return changes, err
	}
	err = r.checkout.Revert(ctx, changes, verdict.Drop)
	if obstructed := (*gitops.ObstructedError)(nil); errors.As(err, &obstructed) {
		return nil, outcome.Stopf(outcome.PolicyViolation, "change",
			"The change touches protected files (%s), which can't be put back (policy.on_protected): what was made at %s is in the way; have it removed.",
			strings.Join(markdown.FileNames(verdict.Drop), ", "), strings.Join(markdown.FileNames(obstructed.Paths), ", ")).Because(err)
	}
	if err != nil {
		return nil, err
	}
	r.rec.Warn("protected_dropped", "Changes of protected files were left out (policy.on_protected): %s.", strings.Join(markdown.FileNames(verdict.Drop), ", "))
	return r.checkout.Changes(ctx, r.snapshot)
}

// judgePaths refuses a change that touches what the policy protects, and warns
// of what a reviewer should see.
func (r *run) judgePaths() error {
	verdict, err := r.verdict(r.changes)
	if err != nil {
		return err
	}
	var fails []string
	for _, f := range verdict.Fail {
		fails = append(fails, f.String()+r.whyLeftOut(f))
	}
	for _, path := range verdict.Drop { // where the change did not come from this checkout
		fails = append(fails, fmt.Sprintf("%q is protected by policy.protect", path))
	}
	if len(fails) > 0 {
		return outcome.Stopf(outcome.PolicyViolation, "change", "The change may not be published: %s.", strings.Join(fails, "; "))
	}
	const shown = 20
	for i, f := range verdict.Warn {
		if i == shown {
			r.rec.Warn("change", "%d more files have something about them that policy.change warns of.", len(verdict.Warn)-shown)
			break
		}
		r.rec.Warn("change", "%s.", f)
	}
	return nil
}

// leftOut are the problems for which a file is no part of a change, whose details
// say why.
var leftOut = []gitops.ProblemKind{gitops.ProblemUnreadable, gitops.ProblemLarge, gitops.ProblemTooDeep}

// whyLeftOut is what keeps a file out of the change, for the end of a sentence.
func (r *run) whyLeftOut(f policy.Finding) string {
	for _, p := range r.changes.Problems {
		if p.Path == f.Path && f.Concern == concernOf[p.Kind] && slices.Contains(leftOut, p.Kind) {
			return fmt.Sprintf(" (%s)", outcome.Trimmed(errors.New(p.Detail)))
		}
	}
	return ""
}

// leftBehind names what the run made that is no part of the change and so stays
// in the checkout, for the end of a sentence.
func (r *run) leftBehind() string {
	var left []string
	for _, p := range r.inCheckout().Problems {
		if !slices.ContainsFunc(r.inCheckout().Files, func(f gitops.File) bool { return f.Path == p.Path }) {
			left = append(left, p.Path)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf(" but for %s, which cannot be part of a change", some(left))
}

// leakedSecrets names the secrets that the change adds: values of this run, and
// what has the shape of a token and did not stand in what the change takes away.
func (r *run) leakedSecrets(ctx context.Context) ([]string, error) {
	patch, err := r.rec.Open(record.PatchFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	defer patch.Close()
	var added, removed bytes.Buffer
	if err := splitPatch(given.Until(ctx, patch), &added, &removed); err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PatchFile, err)
	}
	leaked, err := r.rec.Redactor().FindNew(given.Until(ctx, &added), given.Until(ctx, &removed))
	if err != nil {
		return nil, fmt.Errorf("search %s: %w", record.PatchFile, err)
	}
	for _, f := range r.changes.Files {
		more, err := r.leakedInBinary(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("search %q: %w", f.Path, err)
		}
		leaked = append(leaked, more...)
	}
	slices.Sort(leaked)
	return slices.Compact(leaked), nil
}

// leakedInBinary names the secrets that a binary file brings: a patch has its
// content packed, or not at all. One NUL makes any text such a file.
func (r *run) leakedInBinary(ctx context.Context, f gitops.File) ([]string, error) {
	if !f.Binary || !hasBlob(f.NewMode) {
		return nil, nil
	}
	now, err := r.bothReadings(f.NewID)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	if !hasBlob(f.OldMode) {
		return r.rec.Redactor().FindNew(given.Until(ctx, now), nil)
	}
	before, err := r.bothReadings(f.OldID)
	if err != nil {
		return nil, err
	}
	defer before.Close()
	return r.rec.Redactor().FindNew(given.Until(ctx, now), given.Until(ctx, before))
}

// hasBlob says whether a path of that mode has a content: a submodule has none.
func hasBlob(mode string) bool { return mode != "" && mode != "160000" }

// bothReadings gives a blob as it is, and again without NULs, which stand between
// the letters of a text in UTF-16.
func (r *run) bothReadings(id string) (io.ReadCloser, error) {
	plain, _, err := r.checkout.Blob(id)
	if err != nil {
		return nil, err
	}
	again, _, err := r.checkout.Blob(id)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return twice{io.MultiReader(plain, strings.NewReader("\n"), withoutNULs{again}), plain, again}, nil
}

type twice struct {
	io.Reader
	plain, again io.Closer
}

func (t twice) Close() error { return errors.Join(t.plain.Close(), t.again.Close()) }

type withoutNULs struct{ io.Reader }

func (w withoutNULs) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	return len(slices.DeleteFunc(p[:n], func(c byte) bool { return c == 0 })), err
}

// splitPatch writes the lines that a patch adds and takes away, without their
// signs. Headers count as added: names of files are part of a change.
func splitPatch(patch io.Reader, added, removed io.Writer) error {
	lines := bufio.NewReader(patch)
	for {
		line, err := lines.ReadString('\n')
		to := added
		switch {
		case strings.HasPrefix(line, "-"):
			line, to = line[1:], removed
		case strings.HasPrefix(line, "+"):
			line = line[1:]
		case strings.HasPrefix(line, " "):
			to = io.Discard
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
