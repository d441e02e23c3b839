package bundle

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// world is a forge with a repository, and a checkout of it for both halves.
type world struct {
	t     *testing.T
	forge *forgetest.Forge
	repo  *forgetest.Repository
	dir   string // the checkout
	env   settings.Environment
	event intake.Event
	set   []string // for the second half: KEY=VALUE
	shows string   // folder of the checkout of the second half; empty for dir
}

func newWorld(t *testing.T) *world {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{})
	w := &world{t: t, forge: f, repo: f.AddRepository("octo", "widgets"), dir: gittest.New(t).Dir}
	w.env = settings.Environment{"PATH=" + os.Getenv("PATH"), "GITHUB_TOKEN=" + f.Token}
	w.commit("README.md", "one\n", "Begin")
	w.repo.Receive(w.dir)
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	return gittest.Repo{T: w.t, Dir: dir}.Git(args...)
}

// commit commits a file in the checkout.
func (w *world) commit(name, content, message string) string {
	w.t.Helper()
	repo := gittest.Repo{T: w.t, Dir: w.dir}
	repo.Write(name, content)
	repo.Commit(message)
	return repo.Git("rev-parse", "HEAD")
}

// told is what the transcript of a first half says, which a test may change.
type told struct {
	started   transcript.RunStarted
	job       job.Job
	task      transcript.Task
	workspace transcript.Workspace
	change    *transcript.Change
	verify    *transcript.Verify
	finished  transcript.RunFinished
}

// firstHalf makes the run directory of a run on issue #7 that changed a file, and
// gives it as the second half gets it.
func (w *world) firstHalf(change func(*told)) *record.Record {
	w.t.Helper()
	ctx := w.t.Context()
	rec := record.New("run-1", nil)
	must.Do(w.t, rec.Make(filepath.Join(w.t.TempDir(), "bundle"), nil))
	defer rec.Close()
	space := must.Get(workspace.Open(ctx, rec, workspace.Options{Dir: w.dir, Path: os.Getenv("PATH")}))(w.t)
	defer space.Close()
	must.Do(w.t, space.StartOn(ctx, ""))
	repo := gittest.Repo{T: w.t, Dir: w.dir}
	repo.Write("hello.txt", "Hello.\n")
	repo.Git("add", "hello.txt")
	made, err := space.Checkout().ChangeBetween(ctx, space.Base(), gitops.Tree(repo.Git("write-tree")))
	must.Do(w.t, err)
	repo.Git("reset", "--quiet")
	_, err = space.WritePatch(ctx, made, "")
	must.Do(w.t, err)
	must.Do(w.t, space.WritePack(ctx, made, record.PackFile))
	must.Do(w.t, os.Remove(filepath.Join(w.dir, "hello.txt")))
	says := told{
		started:   transcript.RunStarted{RunID: "run-1", Key: "issue-7"},
		task:      transcript.Task{Source: "issue", Title: "Greet", Issue: "octo/widgets#7", Actor: "ada", ActorID: 1, Author: "grace", AuthorID: 2, InputDigest: strings.Repeat("ab", 32)},
		workspace: transcript.Workspace{Repository: "octo/widgets", Base: "main", BaseSHA: space.Base().SHA, Branch: "agent-ci/issue-7"},
		change:    &transcript.Change{TreeSHA: string(made.Tree), Files: workspace.ChangeFiles(made), Patch: record.PatchFile},
		finished:  transcript.RunFinished{Outcome: string(outcome.Changed), Reason: "left_in_checkout", Summary: "Greets."},
	}
	if change != nil {
		change(&says)
	}
	w.write(rec, says)
	return w.secondRecord(rec.Path())
}

func (w *world) write(rec *record.Record, says told) {
	w.t.Helper()
	var err error
	if says.started.Job == nil {
		says.started.Job, err = json.Marshal(says.job)
		must.Do(w.t, err)
	}
	must.Do(w.t, rec.Begin(says.started))
	must.Do(w.t, rec.Append(says.task))
	must.Do(w.t, rec.Append(says.workspace))
	if says.change != nil {
		must.Do(w.t, rec.Append(*says.change))
	}
	if says.verify != nil {
		must.Do(w.t, rec.Append(*says.verify))
	}
	if says.finished.Outcome != "" {
		says.finished.Files, err = rec.Digests(w.t.Context())
		must.Do(w.t, err)
		must.Do(w.t, rec.Append(says.finished))
	}
	must.Do(w.t, rec.SyncLog())
	must.Do(w.t, rec.WriteJSON(record.ResultFile, map[string]string{"transcript_sha256": rec.Log().Head()}))
}

func (w *world) secondRecord(dir string) *record.Record {
	w.t.Helper()
	rec := record.New("", nil)
	directory := must.Get(record.OpenDirectory(dir))(w.t)
	rec.Directory = directory
	w.t.Cleanup(rec.Close)
	return rec
}

// open is what opening a bundle comes to.
func (w *world) open(rec *record.Record) (Bundle, error) {
	w.t.Helper()
	return Open(w.t.Context(), rec, w.env.Token() != "")
}

// half is the second half.
func (w *world) half(rec *record.Record) SecondHalf {
	w.t.Helper()
	dir := w.dir
	if w.shows != "" {
		dir = w.shows
	}
	space := must.Get(workspace.Open(w.t.Context(), rec, workspace.Options{Dir: dir, Path: os.Getenv("PATH")}))(w.t)
	w.t.Cleanup(func() { space.Close() })
	client := must.Get(github.New(github.Options{APIURL: w.forge.APIURL, ServerURL: w.forge.URL, Token: w.forge.Token}))(w.t)
	return SecondHalf{
		Record: rec, Workspace: space, Event: w.event,
		Source: &settings.Source{Warn: rec.Warn, Inputs: settings.Inputs{Env: w.env, Set: w.set}},
		Forge: func(*job.Job) (publish.Forge, error) {
			return publish.Forge{Publisher: publish.Publisher{Project: publish.Project{Forge: client, Repo: client.Repository("octo/widgets"), ServerURL: w.forge.URL}, Record: rec, Workspace: space, Env: w.env}}, nil
		},
	}
}

// propose makes a proposal of what a first half told.
func (w *world) propose(change func(*told)) (publish.Forge, publish.Proposal, error) {
	w.t.Helper()
	rec := w.firstHalf(change)
	b := must.Get(w.open(rec))(w.t)
	return w.half(rec).Propose(w.t.Context(), b)
}

// refused is a bundle that is refused for a reason, in these words.
func (w *world) refused(change func(*told), reason, words string) {
	w.t.Helper()
	_, p, err := w.propose(change)
	outcometest.Want(w.t, err, reason, words)
	if p.Change != nil {
		w.t.Errorf("there is a change: %+v", p.Change)
	}
}

// publish publishes a proposal that nothing is judged of.
func (w *world) publish(to publish.Forge, p publish.Proposal) publish.Publication {
	w.t.Helper()
	p.Judge = func(context.Context, *job.Job, *gitops.ChangeSet) error { return nil }
	var out publish.Publication
	must.Do(w.t, publish.Publish(w.t.Context(), to, p, &out))
	return out
}

// happens is an event of Actions, as JSON.
func (w *world) happens(name, payload string) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "event.json")
	must.Do(w.t, os.WriteFile(path, []byte(payload), 0o644))
	w.env = append(slices.Clone(w.env), "GITHUB_ACTIONS=true", "GITHUB_EVENT_NAME="+name, "GITHUB_EVENT_PATH="+path, "GITHUB_REPOSITORY=octo/widgets")
	w.event = intake.ReadEvent(w.t.Context(), intake.Surroundings{InActions: true, EventName: name, EventPath: path, Repository: "octo/widgets", HasToken: true})
}
