package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Author of commits if the environment names none. RFC 2606 reserves the address's domain, so it never exists.
const (
	committerName  = "agent-ci"
	committerEmail = "agent-ci@noreply.invalid"
)

// transcriptTrailer names the trailer with the digest of the transcript's last line at the time of the commit.
const transcriptTrailer = "Agent-CI-Transcript"

// commitHere makes the commit on this machine, records it, and returns its SHA.
func (m Publisher) commitHere(ctx context.Context, p *Proposal, message string) (string, error) {
	defer m.Record.BeginStep(record.PhasePublishing, "commit on "+p.Task.Branch)()
	options := m.commitOptions(message, time.Now())
	options.Key = p.Key
	commit, err := m.Workspace.Checkout().WriteCommit(ctx, p.Change, options)
	if err != nil {
		return "", fmt.Errorf("commit the change: %w", err)
	}
	return commit, m.recordStep(transcript.Publish{Step: "commit", Branch: p.Task.Branch, HeadSHA: commit})
}

// commitOptions returns the options of a commit at a time, by the people in the environment.
func (m Publisher) commitOptions(message string, when time.Time) gitops.CommitOptions {
	return gitops.CommitOptions{Message: message, Author: m.signature("AUTHOR", when), Committer: m.signature("COMMITTER", when)}
}

// TrialCommit returns the commit that checks see. It equals the published one except for the signature and the
// digest of the transcript, which still changes.
func (m Publisher) TrialCommit(p *Proposal, when time.Time) (gitops.CommitOptions, error) {
	message, err := m.messageWith(p, "")
	return m.commitOptions(message, when), err
}

// recordStep records a publishing step, as one of the run's change or of its lessons.
func (m Publisher) recordStep(step transcript.Publish) error {
	step.About = m.subject
	return m.Record.Append(step)
}

// signature returns the person in GIT_<role>_NAME and GIT_<role>_EMAIL, or else agent-ci. role is AUTHOR or
// COMMITTER.
func (m Publisher) signature(role string, when time.Time) gitops.Signature {
	name, email := m.Env.Get("GIT_"+role+"_NAME"), m.Env.Get("GIT_"+role+"_EMAIL")
	return gitops.Signature{Name: cmp.Or(name, committerName), Email: cmp.Or(email, committerEmail), When: when}
}

// commitMessage returns the commit message. It syncs the transcript to disk first, because the message has the
// transcript's digest.
func (m Publisher) commitMessage(p *Proposal) (string, error) {
	head := p.ChainHead
	if head == "" {
		if err := m.Record.SyncLog(); err != nil {
			return "", err
		}
		head = m.Record.Log().Head()
	}
	return m.messageWith(p, head)
}

// messageWith returns the commit message with the digest of the transcript's last line, which may be "".
func (m Publisher) messageWith(p *Proposal, chainHead string) (string, error) {
	view, err := m.Record.View()
	if err != nil {
		return "", err
	}
	return p.commitMessage(p.title(view), chainHead, m.Name(), m.coAuthorOf(p)), nil
}

// commitMessage returns the commit message: title, summary, closing line and trailers. A summary that only
// repeats the title is left out. Later runs identify the commit by the trailers, which are the last paragraph
// (git-interpret-trailers(1)). With chainHead or coAuthor "", their trailer is left out.
func (p *Proposal) commitMessage(title, chainHead, repository, coAuthor string) string {
	paragraphs := []string{title}
	if summary := markdown.Commit(strings.TrimSpace(p.Summary)); strings.TrimSuffix(summary, ".") != title && summary != "" {
		paragraphs = append(paragraphs, summary)
	}
	paragraphs = append(paragraphs, p.earlierParagraphs()...)
	if closing := Closing(p.Task.Issue, repository); closing != "" {
		paragraphs = append(paragraphs, closing)
	}
	trailers := []string{forge.TrailerRun + ": " + p.RunID}
	if p.Task.Mode() != intake.Join { // with both trailers a later run would treat a person's branch as its own
		trailers = append(trailers, forge.TrailerBase+": "+p.Base.SHA)
	}
	if chainHead != "" {
		trailers = append(trailers, transcriptTrailer+": "+chainHead)
	}
	if p.Task.InputDigest != "" {
		trailers = append(trailers, intake.InputTrailer+": "+p.Task.InputDigest)
	}
	trailers = append(trailers, p.Task.Repair.Trailers(p.Cost)...)
	if coAuthor != "" {
		trailers = append(trailers, "Co-authored-by: "+coAuthor)
	}
	return strings.Join(append(paragraphs, strings.Join(trailers, "\n")), "\n\n") + "\n"
}

// Closing returns the line that makes GitHub close the task's issue on merge. It returns "" for an issue in
// another repository.
func Closing(issue *form.Issue, repository string) string {
	if issue == nil || !strings.EqualFold(issue.Repository, repository) {
		return ""
	}
	return fmt.Sprintf("Fixes #%d", issue.Number)
}

// coAuthorOf returns the requester with the account's no-reply address, such as
// "octocat <583231+octocat@users.noreply.github.com>". If the requester is unknown, it returns the issue's author.
// It returns "" for bots, and if the job wants no co-author.
func (m Publisher) coAuthorOf(p *Proposal) string {
	if !p.Job.PullRequest.Commit.CoAuthor {
		return ""
	}
	login, id := p.Task.Actor, p.Task.ActorID
	hasActor := login != "" && id != 0
	if author := p.Task.Author; !hasActor && author != nil && !author.Bot {
		login, id = author.Login, author.ID
	}
	if login == "" || id == 0 || strings.HasSuffix(login, "[bot]") {
		return ""
	}
	host := "users.noreply." + strings.TrimPrefix(strings.TrimPrefix(m.ServerURL, "https://"), "http://")
	host, _, _ = strings.Cut(host, ":")
	return fmt.Sprintf("%s <%d+%s@%s>", login, id, login, host)
}

// Values of pull_request.commit.sign.
const (
	signGitHub = "github" // GitHub makes the commit and signs it
	signSSH    = "ssh"    // with the key in pull_request.commit.key_env
)

// maxKeyBytes is how much of a key file is read, in bytes.
const maxKeyBytes = 64 << 10

// ReadKey returns the key that signs the commit, or nil if the job does not sign with a key.
func ReadKey(ctx context.Context, env settings.Environment, commit job.Commit) (*sshsig.Key, error) {
	if commit.Sign != signSSH {
		return nil, nil
	}
	key, err := readKey(ctx, env, commit.KeyEnv)
	if err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "signing_key", "The commit cannot be signed: %s.", outcome.WithoutFullStop(err)).Because(err)
	}
	return key, nil
}

// readKey parses the private key in the variable called name. The variable may also have the absolute path of
// a key file. Errors never contain the variable's value.
func readKey(ctx context.Context, env settings.Environment, name string) (*sshsig.Key, error) {
	value := env.Get(name)
	if name == "" || value == "" {
		return nil, errors.New("pull_request.commit.sign is ssh, and the variable that pull_request.commit.key_env names has no key")
	}
	if filepath.IsAbs(value) && !strings.Contains(value, "\n") {
		pem, err := boundedfile.Read(ctx, value, maxKeyBytes)
		if err != nil {
			return nil, fmt.Errorf("the file that %s names cannot be read", name)
		}
		value = string(pem)
	}
	key, err := sshsig.ParseKey([]byte(strings.TrimRight(value, "\n") + "\n"))
	if err != nil {
		return nil, fmt.Errorf("what %s holds: %w", name, err)
	}
	return key, nil
}
