package runner

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// PublishOptions say which bundle to publish, and what it is checked by.
type PublishOptions struct {
	RunDir  string
	Dir     string // the checkout
	JobFile string // the job that the bundle was made by; optional
	Set     []string
	Quiet   bool

	Environ  []string
	Reserved []string
	Version  string
	Progress io.Writer     // may be nil
	Step     *actions.Step // of the job in GitHub Actions; may be nil
}

// Publish is the second half of a run that was made elsewhere: it checks the
// bundle that the run left, commits its change, pushes it and opens the pull
// request. It runs no command of the repository and does not touch the work
// tree. What the bundle says is data: the rules come from the base commit, the
// job file and the environment of this half.
func Publish(ctx context.Context, o PublishOptions) record.Result {
	r := newRun(Options{
		JobFile: o.JobFile, Dir: o.Dir, Set: o.Set, Quiet: o.Quiet, Publish: publishGitHub,
		Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Progress: o.Progress, Step: o.Step,
	}, "", time.Now())
	defer r.close()
	result := r.wholeBundle(ctx, o.RunDir)
	r.tellStep(&result)
	return result
}

func (r *run) wholeBundle(ctx context.Context, runDir string) record.Result {
	r.maskSecrets()
	dir, err := record.OpenDirectory(runDir)
	if err != nil {
		return r.unrecorded(err)
	}
	r.rec.Directory = dir
	if err := dir.Writable(); err != nil {
		return r.unrecorded(err)
	}
	err = r.guarded(ctx, r.publishBundle)
	stop := r.outcomeOf(ctx, err)
	stop.Message = r.rec.Redact(stop.Message)
	result := r.result(stop, err)
	result.TranscriptSHA256, result.File = r.bundleHead, record.PublishFile
	if err := r.rec.WriteJSON(record.PublishFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	if r.bundled() {
		r.rec.Remove(record.StateFolder) // else it may be that of a run that can still go on
	}
	return result
}

func (r *run) publishBundle(ctx context.Context) error {
	bundle, err := r.openBundle(ctx)
	if err != nil {
		return err
	}
	if err := r.openBundleCheckout(ctx); err != nil {
		return err
	}
	if err := r.readPins(ctx); err != nil {
		return err
	}
	if err := r.newForge(ctx); err != nil {
		return err
	}
	if err := r.openBase(ctx, bundle); err != nil {
		return err
	}
	if err := r.loadTemplate(ctx); err != nil {
		return err
	}
	if err := r.adoptBundle(bundle); err != nil {
		return err
	}
	if err := r.belongsHere(ctx, bundle); err != nil {
		return err
	}
	if err := r.canSign(ctx); err != nil {
		return err
	}
	if err := r.canPropose(ctx); err != nil {
		return err
	}
	if bundle.Change == nil || len(bundle.Change.Files) == 0 {
		return r.publishNothing(ctx, bundle)
	}
	if err := r.unpackBundle(ctx, bundle); err != nil {
		return err
	}
	return r.publishChange(ctx)
}

// belongsHere makes sure that the bundle is published where this half knows that
// it belongs.
func (r *run) belongsHere(ctx context.Context, bundle *transcript.View) error {
	if err := r.pinPull(ctx); err != nil {
		return err
	}
	if err := r.findBundleBase(ctx, bundle); err != nil {
		return err
	}
	if err := r.refuseOtherTask(bundle); err != nil {
		return err
	}
	return r.leaveOthersAlone(ctx)
}

// publishNothing is the end of a run that changed nothing: a pull request of its
// task that is open is closed.
func (r *run) publishNothing(ctx context.Context, bundle *transcript.View) error {
	now, err := publish.LookUpBase(ctx, r.repo, r.base)
	if err == nil {
		err = r.mayFollow(r.base, now) // the bundle's commit may be anybody's
	}
	if err != nil {
		return err
	}
	if err := r.publishTo(ctx, r.toForge()); err != nil {
		return err
	}
	stop := nothingToPublish(bundle.Finished)
	if p := r.published; p.pull != nil {
		stop.Message += fmt.Sprintf(" Pull request #%d, which nothing is left of, was closed: %s.", p.pull.Number, p.pull.URL)
	}
	return stop
}

func nothingToPublish(end *transcript.RunFinished) *outcome.Stop {
	return outcome.Stopf(outcome.NoChanges, "nothing_to_publish", "The run ended as %s/%s: there is nothing to publish.", end.Outcome, end.Reason)
}

// bundled says that the run publishes what another made: its work tree is not
// the change's.
func (r *run) bundled() bool { return r.bundleHead != "" }

func badBundle(format string, args ...any) error {
	return refusedBundle("%s; make it again with agent-ci run", fmt.Sprintf(format, args...))
}

// refusedBundle is for what can be mended without another run.
func refusedBundle(format string, args ...any) error {
	return outcome.Stopf(outcome.InvalidInput, "bundle", "The bundle cannot be published: %s.", fmt.Sprintf(format, args...))
}

// openBundle checks the chain of the transcript and reads what it says.
func (r *run) openBundle(ctx context.Context) (*transcript.View, error) {
	if err := plain(r.rec.Directory); err != nil {
		return nil, badBundle("%s", outcome.Trimmed(err))
	}
	head, err := r.rec.CheckChain()
	if err != nil {
		return nil, badBundle("%s", outcome.Trimmed(err))
	}
	r.bundleHead = head
	view, err := r.rec.View()
	if err != nil {
		return nil, badBundle("%s", outcome.Trimmed(err))
	}
	if safeRunID(view.Started.RunID) {
		r.rec.ID = view.Started.RunID
	}
	if view.Finished == nil {
		return nil, badBundle("its run has not ended")
	}
	if err := r.rec.Unaltered(ctx, view.Finished, record.PackFile); err != nil {
		return nil, badBundle("%s", outcome.Trimmed(err))
	}
	return view, r.publishable(view)
}

// bundleFiles are how large the files of a bundle may be that are read or
// written here, in bytes.
var bundleFiles = map[string]int64{
	record.TranscriptFile: 1 << 30, record.ResultFile: 16 << 20, record.PackFile: 256 << 20, record.PatchFile: 1 << 40, record.PullRequestFile: 1 << 40, record.PublishFile: 1 << 40,
}

// plain makes sure that a directory from elsewhere has files where files belong:
// no links, which lead to others, and no pipes, which never end.
func plain(d *record.Directory) error {
	for name, most := range bundleFiles {
		info, err := d.Root().Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no plain file", name)
		case info.Size() > most:
			return fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), most)
		}
	}
	if info, err := d.Root().Lstat(record.StateFolder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder", record.StateFolder)
	}
	return nil
}

// publishable says whether a run ended with something to publish. That the agent
// found nothing to change says something of the task's pull request, which a
// token can look up.
func (r *run) publishable(view *transcript.View) error {
	end := view.Finished
	switch outcome.Outcome(end.Outcome) {
	case outcome.NoChanges:
		if end.Reason == "nothing_to_do" && view.Change != nil && len(view.Change.Files) == 0 && r.env.Token() != "" {
			return nil
		}
		return nothingToPublish(end)
	case outcome.Skipped:
		return nothingToPublish(end)
	case outcome.Changed, outcome.VerifyFailed, outcome.BudgetExceeded:
		if end.Outcome == string(outcome.BudgetExceeded) && !draftOnBudget(view) {
			break
		}
		if view.Change == nil || len(view.Change.Files) == 0 {
			return badBundle("it tells of no change")
		}
		return nil
	}
	return badBundle("its run ended as %s/%s", end.Outcome, end.Reason)
}

// draftOnBudget says whether a limit ended the agent's work, and its job wants
// what there was by then.
func draftOnBudget(view *transcript.View) bool {
	var made job.Job
	if err := json.Unmarshal(view.Started.Job, &made); err != nil {
		return false
	}
	return made.Limits.OnBudget == "draft" && slices.Contains(settings.AgentBudgets, view.Finished.Reason)
}

// openBase finds the commit that the bundle builds on, without moving the work
// tree. A shallow checkout of a later one does not have it: then it is fetched.
// That it belongs to the base branch is made sure of before anything is
// published.
func (r *run) openBase(ctx context.Context, bundle *transcript.View) error {
	var err error
	r.base, err = r.checkout.UseBase(gitops.BaseSpec{SHA: bundleBase(bundle)})
	var unknown *gitops.UnknownBaseError
	if errors.As(err, &unknown) && r.fetchCommit(ctx, bundleBase(bundle), true) == nil {
		r.base, err = r.checkout.UseBase(gitops.BaseSpec{SHA: bundleBase(bundle)})
	}
	return checkoutFailureOrNil(err)
}

// bundleBase is the commit that the change of a bundle is on.
func bundleBase(bundle *transcript.View) string {
	if bundle.Change != nil && bundle.Change.BaseSHA != "" {
		return bundle.Change.BaseSHA
	}
	return bundle.Workspace.BaseSHA
}

// adoptBundle takes over what the bundle says of its run, each value checked.
func (r *run) adoptBundle(bundle *transcript.View) error {
	r.rec.ID, r.branch = bundle.Started.RunID, bundle.Workspace.Branch
	if r.repo.known() && bundle.Workspace.Repository != "" && !strings.EqualFold(bundle.Workspace.Repository, r.repo.Name()) {
		return badBundle("it was made for %s, this is %s", bundle.Workspace.Repository, r.repo.Name())
	}
	if !safeRunID(r.rec.ID) {
		return badBundle("its run id is not one")
	}
	if err := job.ValidateBranch(r.branch); err != nil {
		return badBundle("its branch: %s", outcome.Trimmed(err))
	}
	if r.branch != r.pins.branch && !strings.HasPrefix(r.branch, runBranches) {
		return badBundle("its branch %s is not below agent-ci/, and pull_request.branch does not name it", r.branch)
	}
	if err := r.beAsCautious(bundle); err != nil {
		return err
	}
	r.summary = r.rec.Redact(bundle.Summary())
	r.plan = bundle.Plan
	r.table = transcript.Verify{Passed: true}
	if bundle.Verify != nil {
		r.table = *bundle.Verify
	}
	if isDigest(bundle.Task.Snapshot) {
		r.task.snapshot = bundle.Task.Snapshot
	}
	if bundle.Finished.Outcome == string(outcome.BudgetExceeded) {
		r.overBudget = outcome.Stopf(outcome.BudgetExceeded, bundle.Finished.Reason,
			"The agent was stopped before it was done: %s was used up.", settings.LimitKey(bundle.Finished.Reason))
	}
	r.task.key, r.task.title = bundle.Started.Key, bundle.Task.Title
	if issue, err := job.ParseIssue(bundle.Task.Issue); err == nil && issue.Repository != "" {
		r.task.issue = &issue
	}
	r.adoptPeople(bundle.Task)
	return nil
}

// adoptPeople finds whom the commit names as its co-author. Where the event tells
// who asked, the bundle need not be believed.
func (r *run) adoptPeople(told transcript.Task) {
	if asked := r.eventAsker(); asked.Login != "" {
		told.Actor, told.ActorID = asked.Login, asked.ID
	}
	if job.ValidateKey(told.Actor) == nil {
		r.task.actor, r.task.actorID = told.Actor, told.ActorID
	}
	if job.ValidateKey(told.Author) == nil {
		r.task.author = &forge.User{Login: told.Author, ID: told.AuthorID}
	}
}

// mostProtected is how many patterns are taken of a bundle: each of them is
// compared with each file of its change.
const mostProtected = 10_000

// beAsCautious takes over what the bundle's own job holds back.
func (r *run) beAsCautious(bundle *transcript.View) error {
	var made job.Job
	if err := json.Unmarshal(bundle.Started.Job, &made); err != nil {
		return badBundle("its job cannot be read (%v)", err)
	}
	if _, err := policy.Protected(made.Policy.Protect, []string{"any"}); err != nil || len(made.Policy.Protect) > mostProtected {
		return badBundle("the patterns of its policy.protect cannot be used")
	}
	if made.OnVerifyFailed == "none" {
		r.job.OnVerifyFailed = made.OnVerifyFailed
	}
	r.job.PullRequest.Draft = r.job.PullRequest.Draft || made.PullRequest.Draft
	r.job.Policy.Protect = append(r.job.Policy.Protect, made.Policy.Protect...)
	return nil
}

// isDigest says whether text is a SHA-256 in hex, which can stand in a trailer.
func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// safeRunID says whether id can stand in a trailer.
func safeRunID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// unpackBundle reads the objects of the change and compares them with what the
// transcript says.
func (r *run) unpackBundle(ctx context.Context, bundle *transcript.View) error {
	pack, err := r.rec.Open(record.PackFile)
	if errors.Is(err, fs.ErrNotExist) {
		return badBundle("%s is missing", record.PackFile)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", record.PackFile, err)
	}
	defer pack.Close()
	changes, err := r.checkout.ReadPack(ctx, pack, gitops.Tree(bundle.Change.TreeSHA))
	var refused *gitops.PackError
	if errors.As(err, &refused) {
		return badBundle("%s", outcome.Trimmed(err))
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", record.PackFile, err)
	}
	if !sameFiles(changeFiles(changes), bundle.Change.Files) {
		return badBundle("its objects are not the change that its transcript tells of")
	}
	r.changes = changes
	if _, err := r.writePatch(ctx); err != nil { // what is checked is what the objects say
		return err
	}
	r.kept = true
	return nil
}

// sameFiles compares what was changed; how many lines is the projection's.
func sameFiles(a, b []transcript.ChangeFile) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Path != b[i].Path || a[i].NewID != b[i].NewID || a[i].NewMode != b[i].NewMode || a[i].OldID != b[i].OldID {
			return false
		}
	}
	return true
}
