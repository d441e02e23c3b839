package publish

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// commentOnJoin reports a pushed commit in a comment: title, text and state of a person's pull request
// are its author's. It replaces the existing comments, which a later run wrote in its place.
func (f Forge) commentOnJoin(ctx context.Context, pull *forge.PullRequest, existing []forge.Comment, commit, body string) {
	if err := f.replaceComments(ctx, pull, existing, []string{joinMark(commit) + body}); err != nil {
		f.Record.Warn("comment_not_written", "The change is pushed, but the comment about it could not be written: %v", err)
	}
}

// joinMark returns the start of the comment about a commit on a person's branch.
func joinMark(commit string) string { return intake.JoinMark + intake.FinishedMark(commit) }

// commentsAbout returns the comments of the token's account about a commit on a person's branch.
func (f Forge) commentsAbout(ctx context.Context, pull *forge.PullRequest, commit string) ([]forge.Comment, error) {
	return f.commentsWith(ctx, pull, joinMark(commit), intake.ByTokenAccount(ctx, f.Forge))
}

// ReportLostCommit comments on the last commit of a person's branch if a run pushed it and its comment is
// missing, as after a kill. Anybody can copy a commit's trailers, so the pusher must be the token's account.
// A person with the same account may have rewritten the commit, so its dates must be equal. The run may still
// be about to write its comment, which then replaces this one.
func (f Forge) ReportLostCommit(ctx context.Context, pull *forge.PullRequest) {
	tip, err := intake.LookUpBranch(ctx, f.Repo, pull.Head)
	if err != nil || tip == nil {
		return
	}
	isJoinCommit := tip.Trailer(forge.TrailerRun) != "" && !tip.Amended() && !tip.MadeByRun()
	if !isJoinCommit {
		return
	}
	if _, _, own, err := intake.FindPusher(ctx, f.Forge, f.Repo, pull.Head, tip.SHA); err != nil || !own {
		return // an error is ignored: the next run tries again
	}
	if existing, err := f.commentsAbout(ctx, pull, tip.SHA); err != nil || len(existing) > 0 {
		return
	}
	f.commentOnJoin(ctx, pull, nil, tip.SHA, fmt.Sprintf("Run %s pushed commit %s; its own comment about it is missing. The commit's message says what it did.\n",
		markdown.Text(markdown.Cut(tip.Trailer(forge.TrailerRun), 100)), clip.SHA(tip.SHA)))
}
