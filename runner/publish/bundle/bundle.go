package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Bundle is a run directory made elsewhere, which is not trusted.
type Bundle struct {
	Head string           // digest of the transcript's last line; "" if the chain is not verified
	View *transcript.View // folded from its transcript
}

// Open verifies and parses the transcript in rec's run directory. It sets rec's id to the run's. Head is set
// as soon as the chain is verified, even if Open returns an error.
func Open(ctx context.Context, rec *record.Record, hasToken bool) (b Bundle, err error) {
	if err := requirePlainFiles(rec.Directory); err != nil {
		return b, invalidBundleError("%s", outcome.WithoutFullStop(err))
	}
	if b.Head, err = rec.CheckChain(); err != nil {
		return Bundle{}, invalidBundleError("%s", outcome.WithoutFullStop(err))
	}
	if b.View, err = rec.View(); err != nil {
		return b, invalidBundleError("%s", outcome.WithoutFullStop(err))
	}
	if record.IsSafeID(b.View.Started.RunID) {
		rec.ID = b.View.Started.RunID
	}
	if b.View.Finished == nil {
		return b, invalidBundleError("its run has not ended")
	}
	if err := rec.RequireUnaltered(ctx, b.View.Finished, record.PackFile); err != nil {
		return b, invalidBundleError("%s", outcome.WithoutFullStop(err))
	}
	return b, b.requirePublishable(hasToken)
}

// invalidBundleError returns an error for a bundle that has to be made again.
func invalidBundleError(format string, args ...any) error {
	return refusedBundleError("%s; make it again with agent-ci run", fmt.Sprintf(format, args...))
}

// refusedBundleError returns an error for a bundle that a new run would not fix.
func refusedBundleError(format string, args ...any) error {
	return outcome.Stopf(outcome.InvalidInput, "bundle", "The bundle cannot be published: %s.", fmt.Sprintf(format, args...))
}

// maxBytes is the size limit of a bundle's files, in bytes.
var maxBytes = map[string]int64{
	record.TranscriptFile: 1 << 30, record.ResultFile: 16 << 20, record.PackFile: 256 << 20, record.PatchFile: 1 << 40, record.PullRequestFile: 1 << 40, record.PublishFile: 1 << 40,
}

// Limit returns the size limit of a file in an untrusted run directory, in bytes.
func Limit(name string) int64 { return cmp.Or(maxBytes[name], maxBytes[record.PatchFile]) }

// requirePlainFiles returns an error unless the bundle's files are regular files within limits. Links could
// lead elsewhere, and reads of pipes never end.
func requirePlainFiles(d *record.Directory) error {
	for _, name := range slices.Sorted(maps.Keys(maxBytes)) {
		maxSize := maxBytes[name]
		info, err := d.Root().Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no plain file", name)
		case info.Size() > maxSize:
			return fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), maxSize)
		}
	}
	if info, err := d.Root().Lstat(record.StateFolder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder", record.StateFolder)
	}
	return nil
}

// requirePublishable returns an error if the run ended without anything to publish. A run without a change
// may still concern its task's open pull request, if there is a token.
func (b Bundle) requirePublishable(hasToken bool) error {
	end, bundleJob := b.View.Finished, b.job()
	if bundleJob.Publish.IsFeedback() { // feedback is posted by the run itself, never by a second half
		return outcome.Stopf(outcome.InvalidInput, "bundle",
			"The bundle cannot be published: its job has publish.as: %s, and agent-ci publish publishes only changes; run that job with a token.", bundleJob.Publish.As)
	}
	switch outcome.Outcome(end.Outcome) {
	case outcome.NoChanges:
		concernsPull := end.Reason == "nothing_to_do" && b.View.Change != nil && b.View.Change.Empty() && hasToken
		if !concernsPull {
			return b.NothingToPublish()
		}
		return nil
	case outcome.Skipped:
		return b.NothingToPublish()
	case outcome.BudgetExceeded:
		wantsDraft := bundleJob.Limits.OnBudget == "draft" && slices.Contains(settings.AgentLimitReasons, end.Reason)
		if !wantsDraft {
			return invalidBundleError("its run ended as %s/%s", end.Outcome, end.Reason)
		}
	case outcome.Changed, outcome.VerifyFailed: // with a change, as a rule
	default:
		return invalidBundleError("its run ended as %s/%s", end.Outcome, end.Reason)
	}
	if b.View.Change.Empty() {
		return invalidBundleError("it tells of no change")
	}
	return nil
}

// NothingToPublish returns the outcome for a bundle without a change.
func (b Bundle) NothingToPublish() *outcome.Stop {
	end := b.View.Finished
	return outcome.Stopf(outcome.NoChanges, "nothing_to_publish", "The run ended as %s/%s: there is nothing to publish.", end.Outcome, end.Reason)
}

// job returns the job that made the bundle, or an empty job if it cannot be parsed.
func (b Bundle) job() (made job.Job) {
	if json.Unmarshal(b.View.Started.Job, &made) != nil {
		return job.Job{}
	}
	return made
}

// base returns the SHA of the change's base commit.
func (b Bundle) base() string {
	if b.View.ChangeMoved() {
		return b.View.Change.BaseSHA
	}
	return b.View.Workspace.BaseSHA
}

// unpack reads the change's objects into a checkout. It returns an error if they differ from the transcript.
func (b Bundle) unpack(ctx context.Context, rec *record.Record, into *gitops.Checkout) (*gitops.ChangeSet, error) {
	pack, err := rec.Open(record.PackFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, invalidBundleError("%s is missing", record.PackFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PackFile, err)
	}
	defer pack.Close()
	change, err := into.ReadPack(ctx, pack, gitops.Tree(b.View.Change.TreeSHA))
	if _, refused := errors.AsType[*gitops.PackError](err); refused {
		return nil, invalidBundleError("%s", outcome.WithoutFullStop(err))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.PackFile, err)
	}
	if !changeset.Same(workspace.ChangeFiles(change), b.View.Change.Files) {
		return nil, invalidBundleError("its objects are not the change that its transcript tells of")
	}
	return change, nil
}
