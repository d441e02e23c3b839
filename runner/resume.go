package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// ResumeOptions say which run goes on. All settings are those of its
// transcript: a run that is resumed may never do more than it was started for.
type ResumeOptions struct {
	RunDir string
	Dir    string // the checkout; empty means where the run worked
	Quiet  bool

	Environ  []string
	Reserved []string
	Version  string
	Events   io.Writer // as in Options
	Progress io.Writer
}

// redactedMark begins what stands in a transcript in the place of a secret.
const redactedMark = "[secret "

// markFile holds what gitops must know to go on with the checkout.
const markFile = stateFolder + "/checkout.json"

// Resume goes on with a run that was killed, from its last event. Before it has
// begun to, what fails leaves the run directory as it is, so that it can be
// tried again.
func Resume(ctx context.Context, o ResumeOptions) Result {
	r := &run{
		options: Options{
			Dir: o.Dir, Quiet: o.Quiet, Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Events: o.Events, Progress: o.Progress,
		},
		env: environment(o.Environ), began: time.Now(),
	}
	defer r.close()
	err := r.guarded(ctx, func(ctx context.Context) error { return r.reopen(o.RunDir) })
	if r.past != nil && r.past.finished != nil && !r.dir.has(resultFile) {
		return r.concludeAgain()
	}
	if err == nil {
		err = r.guarded(ctx, r.proceed)
	}
	if !r.resumed {
		return r.unrecorded(err)
	}
	return r.finish(ctx, err)
}

// reopen reads the run directory, and makes sure that nobody else works in it.
func (r *run) reopen(path string) error {
	r.redact()
	dir, err := openDirectory(path)
	if err != nil {
		return err
	}
	r.dir = dir
	if err := r.dir.lock(); err != nil {
		return err
	}
	log, torn, err := transcript.Reopen(dir.join(transcriptFile), transcript.Options{
		Redact: func(text string) string { return r.redactor.Redact(text) },
		Sink:   r.showEvent,
	})
	if err != nil {
		return cannotResume("%s", trimmed(err)).Because(err)
	}
	r.log, r.torn = log, torn
	if r.past, err = r.readPast(); err != nil {
		return err
	}
	if err := r.past.resumable(); err != nil {
		return err
	}
	r.adoptPast()
	return dir.reserve()
}

func cannotResume(format string, args ...any) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: %s.", fmt.Sprintf(format, args...))
}

func (p *past) resumable() error {
	switch {
	case p.finished != nil:
		return cannotResume("it has ended; look at %s, and start a new one", resultFile)
	case p.started == nil || p.workspace == nil:
		return cannotResume("it was killed before it had begun; start a new one")
	case strings.Contains(string(p.started.Job), redactedMark):
		return cannotResume("its job holds a secret that the transcript does not have; put it into a variable and start a new one")
	case p.onPull() && !p.worked():
		return cannotResume("it was killed before the change of its pull request was in the checkout; start a new one")
	case p.onPull() && !strings.HasPrefix(p.workspace.Branch, runBranches):
		return cannotResume("it went on with a person's pull request; ask there again")
	case p.started.Scripted != "":
		return cannotResume("its answers came from a scripted session; start it again")
	}
	return nil
}

// concludeAgain writes the result of a run that was killed between its last
// event and its result.
func (r *run) concludeAgain() Result {
	end := r.past.finished
	view, err := r.view()
	if err != nil {
		return r.unrecorded(err)
	}
	result := Result{
		Version: ResultVersion, Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason, Message: end.Message, ExitCode: end.ExitCode,
		RunID: r.past.started.RunID, BaseSHA: bundleBase(view), PullRequest: PullRequest{Operation: "none"},
		Plan: append([]transcript.PlanStep{}, view.Plan.Steps...), Usage: end.Usage, CostUSD: end.CostUSD, Verify: []VerifyRow{},
		Warnings: append([]transcript.Warning{}, view.Warnings...), Sandbox: Confinement{string(sandbox.LevelNone), []string{}}, Summary: end.Summary,
		TranscriptSHA256: r.log.Head(), Worked: view.Turns > 0, Directory: r.dir.path, File: resultFile,
	}
	if view.Verify != nil {
		result.Verify = verifyRows(view.Verify.Rows)
	}
	if c := view.Change; c != nil && len(c.Files) > 0 {
		result.Changes, result.Stat = &ChangeSummary{len(c.Files), c.Insertions, c.Deletions}, c.Files
	}
	for _, step := range view.Publish {
		result.HeadSHA, result.Branch = step.HeadSHA, step.Branch
		if step.Step == "pull_request" {
			result.PullRequest = PullRequest{Number: step.Number, URL: step.URL, Operation: step.Operation}
		}
	}
	if r.dir.has(outputFile) {
		result.Output = outputFile
	}
	if err := r.dir.writeJSON(resultFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	return result
}

func (d *directory) has(name string) bool {
	_, err := d.root.Lstat(name)
	return err == nil
}

// adoptPast takes over what the transcript says of the run.
func (r *run) adoptPast() {
	p := r.past
	r.id, r.begun, r.began = p.started.RunID, true, time.Now().Add(-p.elapsed)
	r.job, r.options.Publish = &p.job, p.started.Publish
	r.redact()
	r.warnings, r.plan, r.nudged = p.warnings, p.plan, p.nudged()
	r.branch = p.workspace.Branch
	r.task = task{source: p.task.Source, name: p.task.Source, title: p.task.Title, text: p.task.Text, url: p.task.URL, key: p.started.Key, trigger: p.task.Trigger, actor: p.task.Actor, actorID: p.task.ActorID}
	if issue, err := job.ParseIssue(p.task.Issue); err == nil && issue.Repository != "" {
		r.task.issue, r.task.name = &issue, "issue "+issue.String()
	}
	if p.task.Author != "" {
		r.task.author = &github.User{Login: p.task.Author, ID: p.task.AuthorID}
	}
	r.attempts, r.committed = p.attempts, p.commit
	if patches, err := os.ReadDir(r.dir.join(patchesFolder)); err == nil {
		r.patches = len(patches)
	}
}

// proceed is the pipeline from where the run was.
func (r *run) proceed(ctx context.Context) error {
	ctx, stop := r.withTimeLimit(ctx)
	defer stop()
	stages := []func(context.Context) error{r.meetModel, r.meetForge, r.endLeftovers, r.resumeCheckout, r.readCommandRules, r.spareBase, r.confine, r.choosePublishing, r.readOutputSchema, r.recordResumed, r.briefAgent}
	if !r.past.worked() {
		stages = append(stages, r.setUp, r.takeBaseline)
	} else {
		stages = append(stages, r.restore)
	}
	for _, stage := range append(stages, r.workUntilVerified, r.askOutput, r.publishWork) {
		if err := stage(ctx); err != nil {
			return endOf(ctx, err)
		}
	}
	return nil
}

// resumeCheckout opens the checkout and puts it where the last event left it.
func (r *run) resumeCheckout(ctx context.Context) error {
	dir := r.options.Dir
	if dir == "" {
		dir = r.past.workspace.Root
	}
	if r.past.workspace.Cloned && r.options.Dir == "" {
		dir, r.cloned = r.dir.join(checkoutFolder), true
	}
	if err := r.gitUnchangedSince(); err != nil {
		return err
	}
	if err := r.openCheckout(ctx, dir); err != nil {
		return checkoutFailure(err)
	}
	for _, name := range r.dir.leftovers() {
		r.dir.remove(name)
	}
	if !r.past.worked() {
		r.dir.remove(stateFolder + "/untracked")
		return r.sameBase(ctx)
	}
	raw, err := r.dir.root.ReadFile(markFile)
	if err == nil {
		r.snapshot, err = r.checkout.Resume(ctx, raw)
	}
	switch {
	case errors.Is(err, gitops.ErrOtherCheckout), errors.Is(err, fs.ErrNotExist):
		return r.moveHere(ctx)
	case err != nil:
		return fmt.Errorf("go on with the checkout: %w", err)
	}
	if err := r.useBase(); err != nil {
		return err
	}
	r.undone, r.wholePatch, err = r.undoPatch()
	return err
}

func (r *run) useBase() error {
	w := r.past.workspace
	base, err := r.checkout.UseBase(gitops.BaseSpec{Branch: w.Base, SHA: w.BaseSHA})
	if err != nil {
		return checkoutFailure(err)
	}
	r.base = base
	return nil
}

// sameBase makes sure that the checkout is clean and on the run's base commit.
func (r *run) sameBase(ctx context.Context) error {
	w := r.past.workspace
	if r.base.SHA != w.BaseSHA && w.Base != "" {
		if err := r.chooseBase(ctx, w.Base); err != nil {
			return checkoutFailure(err)
		}
	}
	if r.base.SHA != w.BaseSHA {
		return cannotResume("its base commit is %s, the checkout stands on %s; check that commit out", short(w.BaseSHA), short(r.base.SHA))
	}
	r.base.Branch = w.Base
	dirty, err := r.checkout.Dirty(ctx)
	if err != nil {
		return fmt.Errorf("look for uncommitted changes: %w", err)
	}
	if len(dirty) > 0 {
		return cannotResume("this checkout is not the one that it worked in, and has uncommitted changes (%s); give a clean one with --repo", some(dirty))
	}
	return r.findWorkDir()
}

// moveHere does the work so far again in another checkout, as far as patches
// did it.
func (r *run) moveHere(ctx context.Context) error {
	if r.past.onPull() {
		return cannotResume("it goes on with a pull request, and this is not the checkout that it worked in; start a new one")
	}
	if err := r.sameBase(ctx); err != nil {
		return err
	}
	if err := r.takeSnapshot(ctx); err != nil {
		return err
	}
	r.elsewhere = true
	dir := r.workDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the working directory: %w", err)
	}
	defer root.Close()
	patcher := patch.New(patch.Options{Dir: dir, Root: root, Offer: tools.Freeform, Protect: r.whyProtected})
	for n := 1; n <= r.patches; n++ {
		text, err := r.dir.root.ReadFile(patchName(n))
		if err != nil {
			return fmt.Errorf("read %s: %w", patchName(n), err)
		}
		result, err := patcher.Apply(ctx, dir, string(text))
		if err != nil {
			return err
		}
		if result.Failed {
			r.warn("patch_not_repeated", "%s could not be applied again in this checkout: %s", patchName(n), strings.TrimSpace(result.Output))
		}
	}
	return nil
}

// recordResumed writes that the run goes on. From here on it ends in a result.
func (r *run) recordResumed(context.Context) error {
	r.resumed = true
	return r.record(transcript.TypeRunResumed, transcript.RunResumed{
		Version: r.options.Version, Torn: r.torn, Undone: r.undone, Elsewhere: r.elsewhere,
	})
}

// restore puts the conversation and the baseline where the last event left
// them.
func (r *run) restore(context.Context) error {
	begin := r.conversation.Items()
	r.conversation.Restore(&r.past.agent, begin)
	r.table = transcript.Verify{Passed: true}
	if r.past.baseline != nil {
		r.baseline = r.past.baseline.Rows
		r.table = *r.past.baseline
	}
	if len(r.baseline) != len(r.job.Verify) {
		return cannotResume("its transcript has no baseline of the verify commands")
	}
	return nil
}

// leftovers are trees that a verification made which was broken off.
func (d *directory) leftovers() []string {
	names, _ := fs.Glob(d.root.FS(), stateFolder+"/verify-*")
	return names
}

// catchUp answers the calls of the last answer that the run was killed in, once
// there are tools again.
func (r *run) catchUp(ctx context.Context) error {
	if r.past == nil {
		return nil
	}
	past := r.past
	r.past = nil
	if err := r.conversation.Resume(ctx, &past.agent, r.interrupted); err != nil {
		return err
	}
	if r.elsewhere {
		return r.conversation.Tell("The run goes on on another machine. Your patches were applied there again; what commands changed is not there, and nothing that they started runs. " +
			"Look at the checkout before you go on.")
	}
	return nil
}

// interrupted tells the model of a call that was broken off.
func (r *run) interrupted(call tools.Call, began int64) tools.Result {
	const head = "The runner was killed while this call ran, and was started again. "
	patched := r.journalled >= began
	switch {
	case patched && r.undone:
		return tools.Refuse(head + "The patch was half applied and has been taken back whole: nothing of it stands. Send it again if it is still right.")
	case patched && r.wholePatch && call.Name == patchTool:
		return tools.Result{Output: head + "The patch is applied whole. Do not send it again."}
	case call.Name == patchTool:
		return tools.Refuse(head + "Nothing of the patch was applied. Send it again if it is still right.")
	}
	return tools.Refuse(head + "It was not run again. A command may have had some of its effects and not others: look at what is there, and repeat it if that is safe.")
}

// keepMark writes what Resume needs of the checkout.
func (r *run) keepMark() error {
	raw, err := r.checkout.Mark(r.snapshot)
	if err != nil {
		return err
	}
	return r.dir.write(markFile, raw)
}

func patchName(n int) string { return fmt.Sprintf("%s/%03d.patch", patchesFolder, n) }

// endLeftovers kills what the commands of the killed run left running: they
// have its folder of programs on their PATH.
func (r *run) endLeftovers(context.Context) error {
	mark := r.dir.join(programsFolder)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // no such thing here; they died with the run or stay
	}
	for _, entry := range entries {
		pid, isProcess := processID(entry.Name())
		if !isProcess || pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // of another user, or gone
		}
		if ofRun(strings.Split(string(raw), "\x00"), mark) {
			endProcess(pid)
		}
	}
	return nil
}

func ofRun(env []string, folder string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		path, ok := strings.CutPrefix(variable, "PATH=")
		return ok && slices.Contains(filepath.SplitList(path), folder)
	})
}

// releaseAgain goes on with a release in which the run was killed after the
// branch had moved.
func (r *run) releaseAgain(ctx context.Context, before *tip) error {
	r.published.commit, r.published.branch = before.sha, r.branch
	put := r.switchCheckout
	switch {
	case r.drift.inCheckout != nil:
		put = func(ctx context.Context, _ string) error { return r.restoreCheckout(ctx) }
	case r.publishMode() == publishGitHub:
		put = r.switchToPushed
	}
	if err := put(ctx, before.sha); err != nil {
		return err
	}
	if r.publishMode() == publishLocal {
		if err := r.push(ctx, before.sha, before); err != nil {
			return err
		}
	}
	return r.present(ctx)
}
