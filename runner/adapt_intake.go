package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// What stands here lets the stages that are methods of run use runner/intake by
// the names that they know.

const (
	runBranches    = intake.BranchPrefix
	progressMark   = intake.ProgressMark
	questionsMark  = intake.QuestionsMark
	joinMark       = intake.JoinMark
	unfinishedMark = intake.UnfinishedMark
	aloneMark      = intake.UncommentedMark
	trailerInput   = intake.InputTrailer
)

var (
	isProgress    = intake.IsProgress
	defaultBranch = intake.DefaultBranch
	lookUpBranch  = intake.LookUpBranch
	forgeFailure  = intake.ForgeFailure
)

func (r *run) trace() string { return intake.FruitlessMark(r.task.snapshot, r.base.SHA) }

func (r *run) ownsComments(ctx context.Context) func(forge.Comment) bool {
	return intake.OwnComments(ctx, r.forge)
}

func (r *run) ownProgress(ctx context.Context) *forge.Comment {
	return intake.OwnProgress(ctx, r.forge, r.progressLike)
}

// task is intake.Task as the stages know it.
type task struct {
	source, name, title, text, key, url string

	issue  *job.Issue
	author *forge.User

	snapshot, trigger, actor string
	actorID                  int64
}

// given is what the run is asked to do, for the rooms.
func (r *run) given() intake.Task {
	t := r.task
	return intake.Task{
		Source: t.source, Name: t.name, Title: t.title, Text: t.text, Key: t.key, Branch: r.branch, URL: t.url, Issue: t.issue, Author: t.author,
		Mode: intake.ModeOf(r.pull), Pull: r.pull, Snapshot: t.snapshot, Trigger: t.trigger, Actor: t.actor, ActorID: t.actorID,
		AskedAt: r.askedAt, ProgressOn: r.progressOn(), ProgressLike: r.progressLike,
	}
}

func (r *run) recordTask() error { return r.rec.Append(transcript.TypeTask, r.given().Event()) }

func (r *run) adoptRead(t intake.Task) {
	r.task = task{
		source: t.Source, name: t.Name, title: t.Title, text: t.Text, key: t.Key, url: t.URL, issue: t.Issue, author: t.Author,
		snapshot: t.Snapshot, trigger: t.Trigger, actor: t.Actor, actorID: t.ActorID,
	}
	r.askedAt, r.progressLike = t.AskedAt, t.ProgressLike
}

func (r *run) joins() bool { return intake.ModeOf(r.pull) == intake.Join }

func (r *run) surroundings() intake.Surroundings {
	return intake.Surroundings{
		InActions: r.env.InActions(), EventName: r.env.Get("GITHUB_EVENT_NAME"), EventPath: r.env.Get("GITHUB_EVENT_PATH"),
		Repository: r.env.Get("GITHUB_REPOSITORY"), HasToken: r.env.Token() != "",
	}
}

func (r *run) readEvent(ctx context.Context) {
	r.told = intake.ReadEvent(ctx, r.surroundings())
	r.event, r.eventErr = r.told.Event, r.told.Unusable()
}

func (r *run) eventBase() string {
	if r.pull != nil {
		return r.pull.Base
	}
	return r.told.Base()
}

func (r *run) eventRepository() forge.Repository {
	return r.forge.Repository(r.env.Get("GITHUB_REPOSITORY"))
}

func (r *run) findRequest(context.Context) (err error) {
	r.request, err = r.told.Request(r.job)
	return err
}

func (r *run) intake() *intake.Source {
	return &intake.Source{
		Event: r.told, Request: r.request, Job: r.job, JobFile: r.set.File.Name, Forge: r.forge, To: r.repo, Accounts: &r.accounts, Record: r.rec,
		Publishes: r.options.Publish != publishNone,
		Prompt:    func(ctx context.Context) (string, error) { return r.source.ReadPrompt(ctx, r.baseCommit(), r.set) },
		Beside: func(ctx context.Context, name string, limit int64) ([]byte, error) {
			return r.source.ReadBeside(ctx, r.baseCommit(), r.set, name, limit)
		},
	}
}

func (r *run) trustActor(ctx context.Context) (err error) {
	r.pull, err = r.intake().Admit(ctx)
	return err
}

func (r *run) readTask(ctx context.Context) error {
	if r.pull != nil {
		r.job.PullRequest.Branch = r.pull.Head
	}
	t, err := r.intake().Read(ctx, r.pull)
	if err == nil {
		r.adoptRead(t)
	}
	return err
}

func (r *run) notDoneAlready(ctx context.Context) error {
	t := r.given()
	if err := t.FitsBase(r.base.Branch, r.baseName()); err != nil {
		return err
	}
	return r.intake().NotDone(ctx, t, r.base.Branch, r.base.SHA)
}

func (r *run) taskImages(ctx context.Context) ([]agent.Image, []string) {
	if r.replayed() != nil || r.history != nil && r.history.worked() {
		return nil, nil // nobody looks at them, or they are in the conversation already
	}
	return r.intake().Images(ctx, r.given())
}

var nameInURL = intake.NameInURL

func (r *run) repositoryName(server string) string {
	if r.history != nil && r.history.Workspace.Repository != "" {
		return r.history.Workspace.Repository // the run goes on for the same one
	}
	origin := ""
	if r.checkout != nil {
		origin = r.checkout.Origin()
	}
	return intake.RepositoryName(r.job, r.env.Get("GITHUB_REPOSITORY"), origin, server)
}
