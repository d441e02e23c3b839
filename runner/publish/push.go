package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// push takes a commit to its branch in another repository, over what stood there
// before and nothing else. What may not be pushed is told in out.
func (m Means) push(ctx context.Context, p *Proposal, to remote.Remote, commit string, before *tip, out *Publication) error {
	if out.NotPushed = m.whyNotPushed(p, to); out.NotPushed != "" {
		return nil
	}
	root, branch := m.Workspace.Root(), p.Task.Branch
	options := remote.PushOptions{
		Branch: branch, Commit: commit, Expected: before.lease(),
		Git: workspace.FindGit(m.Env.Get("PATH"), root), Path: gitops.PathOutside(m.Env.Get("PATH"), root),
	}
	if err := workspace.Patiently(ctx, func() error { return m.pushOnce(ctx, p.Change, to, options) }); err != nil {
		return workspace.RemoteFailure(fmt.Sprintf("The branch %s cannot be pushed to %s", branch, to.Name()), err)
	}
	return m.pushed(branch, commit, to, out)
}

// whyNotPushed says why a change is not pushed to a repository on this machine.
func (m Means) whyNotPushed(p *Proposal, to remote.Remote) string {
	path, local := to.Local()
	if !local {
		return ""
	}
	if m.commandsWrite(p, path) { // a push runs the hooks of that repository
		return fmt.Sprintf("commands of the run can write %s", to.Name())
	}
	if holds, err := gitops.Holds(path, p.Base.SHA); err == nil && !holds {
		return fmt.Sprintf("%s does not have the base commit yet: push %s first", to.Name(), workspace.BaseName(p.Base))
	}
	return ""
}

// commandsWrite says whether a path lies where commands of the run can write, or is
// reached through that.
func (m Means) commandsWrite(p *Proposal, path string) bool {
	root := m.Workspace.Root()
	folders := append(m.Env.Absolute(root, p.Job.Policy.Writable), root)
	return slices.ContainsFunc(folders, func(folder string) bool { return gitops.LeadsThrough(path, folder) })
}

func (m Means) pushOnce(ctx context.Context, change *gitops.ChangeSet, to remote.Remote, options remote.PushOptions) error {
	const name = record.StateFolder + "/push.pack"
	if err := m.Workspace.WritePack(ctx, change, name, options.Commit); err != nil {
		return err
	}
	pack, err := m.Record.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer pack.Close()
	options.Pack = pack
	return remote.Push(ctx, to, options)
}

func (m Means) pushed(branch, commit string, to remote.Remote, out *Publication) error {
	out.Remote = to.Name()
	return m.record(transcript.Publish{Step: "push", Branch: branch, HeadSHA: commit, Remote: out.Remote})
}
