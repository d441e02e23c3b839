package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// The commits of a run are agent-ci's own where the environment names nobody.
// The address is of a domain that can never exist (RFC 2606).
const (
	committerName  = "agent-ci"
	committerEmail = "agent-ci@noreply.invalid"
)

// trailerTranscript names in a commit the transcript that it was made by.
const trailerTranscript = "Agent-CI-Transcript"

// commitChange makes the commit of the change set. Its message carries the
// head of the transcript's chain at this moment.
func (r *run) commitChange(ctx context.Context) (string, error) {
	head, err := r.chainHead()
	if err != nil {
		return "", err
	}
	view, err := r.rec.View()
	if err != nil {
		return "", err
	}
	message, now := r.commitMessage(view, head), time.Now()
	commit, made, err := r.commitOnGitHub(ctx, message)
	if err != nil {
		return "", err
	}
	if !made {
		commit, err = r.checkout.WriteCommit(ctx, r.changes, gitops.CommitOptions{
			Message: message, Author: r.signature("AUTHOR", now), Committer: r.signature("COMMITTER", now), Sign: r.signer(),
		})
	}
	if err != nil {
		return "", fmt.Errorf("commit the change: %w", err)
	}
	return commit, r.rec.Append(transcript.TypePublish, transcript.Publish{Step: "commit", Branch: r.branch, HeadSHA: commit})
}

// chainHead is the end of the transcript's chain, once it is on disk.
func (r *run) chainHead() (string, error) {
	if r.bundled() {
		return r.bundleHead, nil
	}
	if err := r.rec.SyncLog(); err != nil {
		return "", err
	}
	return r.rec.Log().Head(), nil
}

// signature is who GIT_AUTHOR_… or GIT_COMMITTER_… names, else agent-ci.
func (r *run) signature(role string, when time.Time) gitops.Signature {
	s := gitops.Signature{Name: committerName, Email: committerEmail, When: when}
	if name := r.env.Get("GIT_" + role + "_NAME"); name != "" {
		s.Name = name
	}
	if email := r.env.Get("GIT_" + role + "_EMAIL"); email != "" {
		s.Email = email
	}
	return s
}

// commitMessage is the title, the summary, what it fixes, and the trailers by
// which a later run knows the commit (git-interpret-trailers(1): the last
// paragraph).
func (r *run) commitMessage(view *transcript.View, head string) string {
	title := r.title(view)
	paragraphs := []string{title}
	if summary := markdown.Commit(strings.TrimSpace(r.summary)); strings.TrimSuffix(summary, ".") != title && summary != "" {
		paragraphs = append(paragraphs, summary)
	}
	if closing := r.closing(); closing != "" {
		paragraphs = append(paragraphs, closing)
	}
	trailers := []string{gitops.TrailerRun + ": " + r.rec.ID}
	if !r.joins() { // with both a later run would take the branch for its own, and push over it
		trailers = append(trailers, gitops.TrailerBase+": "+r.base.SHA)
	}
	trailers = append(trailers, trailerTranscript+": "+head)
	if r.task.snapshot != "" {
		trailers = append(trailers, trailerInput+": "+r.task.snapshot)
	}
	if who := r.coAuthor(); who != "" {
		trailers = append(trailers, "Co-authored-by: "+who)
	}
	return strings.Join(append(paragraphs, strings.Join(trailers, "\n")), "\n\n") + "\n"
}

// closing closes the issue that the task came from, once the change is merged;
// "" for one of another repository, which is not this one's to close.
func (r *run) closing() string {
	if r.task.issue == nil || !strings.EqualFold(r.task.issue.Repository, r.repo.Name()) {
		return ""
	}
	return fmt.Sprintf("Fixes #%d", r.task.issue.Number)
}

// coAuthor is who asked for the work, else who wrote the issue, by the address
// under which GitHub knows every account. Bots are none.
func (r *run) coAuthor() string {
	if !r.job.PullRequest.Commit.CoAuthor {
		return ""
	}
	login, id := r.task.actor, r.task.actorID
	if author := r.task.author; (login == "" || id == 0) && author != nil && !author.Bot {
		login, id = author.Login, author.ID
	}
	if login == "" || id == 0 || strings.HasSuffix(login, "[bot]") {
		return ""
	}
	host := "users.noreply.github.com"
	if r.repo.serverURL != "https://github.com" {
		host = "users.noreply." + strings.TrimPrefix(strings.TrimPrefix(r.repo.serverURL, "https://"), "http://")
		host, _, _ = strings.Cut(host, ":")
	}
	return fmt.Sprintf("%s <%d+%s@%s>", login, id, login, host)
}
