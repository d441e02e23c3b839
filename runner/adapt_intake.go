package runner

import (
	"context"
	"regexp"

	"github.com/agent-ci/agent-ci/gitops/forge"
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

var issueInBranch = regexp.MustCompile(`(?:^|-)issue-([1-9][0-9]{0,8})$`)

var (
	commitMark        = intake.FinishedMark
	isFinished        = intake.IsFinished
	isProgress        = intake.IsProgress
	defaultBranch     = intake.DefaultBranch
	lookUpBranch      = intake.LookUpBranch
	readPullRequest   = intake.ReadPullRequest
	forgeFailure      = intake.ForgeFailure
	forgeFailureOrNil = intake.ForgeFailure
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

func (r *run) joins() bool { return intake.ModeOf(r.pull) == intake.Join }
