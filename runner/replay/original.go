package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/replay/audit"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Result is a replay compared with its run.
type Result struct {
	audit.Replay
	Calls       int // that were compared, or requests where tools were frozen
	Differences audit.Differences
}

// addDifferences appends differences to the result.
func (r *Result) addDifferences(found ...audit.Differences) {
	for _, differences := range found {
		r.Differences = append(r.Differences, differences...)
	}
}

// Original is the replayed run.
type Original struct {
	*history.Run
	Record *record.Record
	env    settings.Environment
	audit  audit.Record
}

// Open opens the run in a directory. The caller closes its record.
func Open(dir string, env settings.Environment) (*Original, error) {
	rec := record.New("", settings.Secrets(env, nil))
	var err error
	if rec.Directory, err = record.OpenDirectory(dir); err != nil {
		return nil, err
	}
	h, err := history.Read(rec)
	if err == nil && !h.StartedWork() {
		err = errors.New("the run had not begun: there is nothing to replay")
	}
	if err != nil {
		rec.Close()
		return nil, err
	}
	h.Foreign = !rec.RecordedHere(record.DigestsPath(env.Get))
	return &Original{h, rec, env, audit.Record{Directory: rec.Directory, View: h.View, Job: &h.Job}}, nil
}

// OpenCheckout opens the checkout at dir, on the run's base commit. to is the replay's record. An empty dir
// means the run's own folder, or the current folder for a foreign record, which may name any folder.
func (o *Original) OpenCheckout(ctx context.Context, to *record.Record, dir string) (*workspace.Workspace, error) {
	from := o.Workspace.Root
	if o.Foreign {
		from = "."
	}
	ws, err := o.openCheckout(ctx, to, cmp.Or(dir, from), "")
	if err == nil {
		err = ws.SetBase(ctx, gitops.BaseSpec{Branch: o.Workspace.Base, SHA: o.Workspace.BaseSHA})
	}
	return ws, workspace.CheckoutFailure(err)
}

// openCheckout opens the checkout at dir and its HEAD. name is its name for people, or "".
func (o *Original) openCheckout(ctx context.Context, to *record.Record, dir, name string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(ctx, to, workspace.Options{Dir: dir, Name: name, Path: o.env.Get("PATH"), Forge: o.env.ForgeServer(), OpenFilter: confine.EarlyFilters(to, o.env)})
	if err != nil {
		return nil, err
	}
	return ws, ws.StartOn(ctx, "")
}

// MakeTree makes a fresh tree of the base commit from source's objects, below the run directory of to. name is
// its name for people.
func (o *Original) MakeTree(ctx context.Context, to *record.Record, source *workspace.Workspace, name string) (*workspace.Workspace, error) {
	base, into := source.Base(), to.Join(record.CheckoutFolder)
	source.Checkout().AllowFilters(o.Job.Git.FilterReads())
	if err := source.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: into, TreeForCommands: gitops.TreeForCommands{Tree: base.Tree}}); err != nil {
		return nil, err
	}
	tree, err := o.openCheckout(ctx, to, into, name)
	if err != nil {
		return tree, workspace.CheckoutFailure(err)
	}
	if treeBase := tree.Base().SHA; treeBase != base.SHA {
		return tree, fmt.Errorf("the fresh tree stands on %s, not on the base %s", clip.SHA(treeBase), clip.SHA(base.SHA))
	}
	return tree, tree.SetBase(ctx, gitops.BaseSpec{Branch: base.Branch, SHA: base.SHA})
}

// workTreePaths returns the paths of the run's work tree, each followed by the replay's path.
func (o *Original) workTreePaths(tree *workspace.Workspace) []string {
	pairs := []string{o.Workspace.Root, tree.Root()}
	if seen := o.Policy.SandboxPath; seen != "" {
		pairs = append([]string{seen, tree.SandboxPath()}, pairs...)
	}
	return pairs
}

// WriteBody writes the pull request's body of a replay in tree. It names the transcript and folder of the
// original run, so that the bodies of two replays differ only in durations.
func (o *Original) WriteBody(to *record.Record, tree *workspace.Workspace, publisher publish.Publisher, p publish.Proposal) error {
	view, err := to.View()
	if err != nil {
		return err
	}
	recorded, err := o.Record.Directory.View()
	if err != nil {
		return err
	}
	view.Head, view.EventCount = recorded.Head, recorded.EventCount
	options := publisher.BodyOptions(&p)
	options.RunDir = filepath.Base(o.Record.Path())
	posts, err := body.Compose(view, options)
	if err != nil {
		return err
	}
	paths := o.workTreePaths(tree)
	for i := 0; i < len(paths); i += 2 { // replace the replay's paths by the run's
		paths[i], paths[i+1] = paths[i+1], paths[i]
	}
	return to.Write(record.PullRequestFile, []byte(strings.NewReplacer(paths...).Replace(posts.Body)))
}

// Compare adds to result the differences between the run and its replay. to is the replay's record, and
// treePath its work tree.
func (o *Original) Compare(ctx context.Context, result *Result, recording *Recording, to *record.Record, treePath string) error {
	var err error
	if result.Differences, err = o.audit.CompareOutputs(recording.Outputs, to.Directory, treePath); err != nil {
		return err
	}
	endedByItself := o.Finished != nil && !slices.Contains(history.StoppedFromOutside, outcome.Outcome(o.Finished.Outcome))
	result.addDifferences(missingHookAnswers(recording.Answers, endedByItself))
	switch {
	case !recording.Answers.RanOut:
		result.addDifferences(o.audit.CompareEnd(result.Replay))
	case endedByItself: // nothing stopped the run before it had all answers
		result.addDifferences(o.audit.ReportMissingAnswers(result.Replay))
	}
	patch, err := o.audit.ComparePatch(ctx)
	result.addDifferences(patch)
	return err
}

// missingHookAnswers returns a difference for each question to a hook whose answer the record should have. A run
// that was stopped lacks answers at its end, but a run with an answer of the model has all of its start.
func missingHookAnswers(a *Answers, endedByItself bool) (found audit.Differences) {
	for _, q := range a.Hooks.Missing() {
		if q.AtStart() && len(a.answers) > 0 || endedByItself && !a.RanOut {
			found = append(found, audit.Difference{Subject: "hook " + q.Hook + " on " + q.Event, Recorded: "(not there)", Replayed: "asked"})
		}
	}
	return found
}

// CheckWithoutRunning verifies that the record yields the sent requests and the change, and writes the body.
// It runs nothing. source has the base's objects.
func (o *Original) CheckWithoutRunning(ctx context.Context, to *record.Record, source *workspace.Workspace) (*Result, error) {
	result := &Result{Replay: audit.Replay{Tree: string(source.Base().Tree)}}
	requests, number, err := o.audit.CompareRequests()
	if err != nil {
		return nil, err
	}
	result.Calls = number
	result.addDifferences(requests, o.audit.CheckConsistency(ctx))
	view, err := o.Record.Directory.View()
	if err != nil {
		return nil, err
	}
	patch, err := o.audit.ComparePatch(ctx)
	if err != nil {
		return nil, err
	}
	result.addDifferences(patch)
	if change := o.Work.Change; change != nil {
		changes, err := source.ReadWork(ctx, o.Record.Directory, change)
		if err != nil {
			return nil, err
		}
		result.Tree = string(changes.Tree)
		result.addDifferences(o.audit.CompareFiles(workspace.ChangeFiles(changes), result.Tree))
		if err := source.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: to.Join(record.CheckoutFolder), TreeForCommands: gitops.TreeForCommands{Tree: changes.Tree}}); err != nil {
			return nil, err
		}
	}
	proposal := publish.Proposal{Job: &o.Job, Task: o.RecordedTask(), Verification: transcript.Verify{Passed: true}}
	if view.Verify != nil {
		proposal.Verification = *view.Verify
	}
	publisher := publish.Publisher{Record: o.Record, Workspace: source, Env: o.env} // the template is that of the checkout
	posts, err := body.Compose(view, publisher.BodyOptions(&proposal))
	if err != nil {
		return nil, err
	}
	return result, to.Write(record.PullRequestFile, []byte(posts.Body))
}
