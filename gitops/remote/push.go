package remote

import (
	"context"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

type PushOptions struct {
	Branch string // without refs/heads/
	Commit string // hex id
	// Expected is where the branch is now, "" when it must not exist yet. The
	// remote checks it again as it moves the branch, which may go anywhere
	// from there.
	Expected string
	// Pack is a packfile, not thin, with the objects of Commit that the remote
	// does not have; nil when it has them all. An http remote's pack is held
	// in memory.
	Pack io.Reader
	// Git is the path of a git program, or "". With it a push to a path on
	// this machine runs git-receive-pack and the hooks of that repository.
	Git string
	// Path is PATH for that program and the hooks; empty: that of this process.
	Path string
}

// Push moves one branch of a remote to a commit. It does nothing when the
// branch is there already. The errors are *LeaseError, *RejectedError and what
// wraps ErrAuth, ErrNotFound or ErrUnreachable.
func Push(ctx context.Context, r Remote, o PushOptions) error {
	command, err := o.command()
	if err != nil {
		return err
	}
	session, err := r.receiveSession(ctx, o)
	if err != nil {
		return r.failed(ctx, "push to", err)
	}
	defer session.Close()
	advertised, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return r.failed(ctx, "push to", err)
	}
	found := advertised.References[command.Name.String()]
	if found == command.New {
		return nil
	}
	if found != command.Old {
		return o.leaseError(found)
	}
	return r.update(ctx, session, advertised, command, o)
}

func (o PushOptions) command() (*packp.Command, error) {
	name := plumbing.NewBranchReferenceName(o.Branch)
	if o.Branch == "" || name.Validate() != nil {
		return nil, fmt.Errorf("push: %q is not the name of a branch", o.Branch)
	}
	if !plumbing.IsHash(o.Commit) || o.Expected != "" && !plumbing.IsHash(o.Expected) {
		return nil, fmt.Errorf("push %s: %q and %q must be hex ids of commits", o.Branch, o.Commit, o.Expected)
	}
	return &packp.Command{Name: name, Old: plumbing.NewHash(o.Expected), New: plumbing.NewHash(o.Commit)}, nil
}

func (o PushOptions) leaseError(found plumbing.Hash) *LeaseError {
	lost := &LeaseError{Branch: o.Branch, Expected: o.Expected}
	if !found.IsZero() {
		lost.Found = found.String()
	}
	return lost
}

func (r Remote) update(ctx context.Context, session transport.ReceivePackSession, advertised *packp.AdvRefs, command *packp.Command, o PushOptions) error {
	said := &words{}
	report, err := session.ReceivePack(ctx, updateRequest(advertised, command, o.Pack, said))
	status := refused(report)
	if err == nil && status == "" {
		return nil
	}
	if status == "" {
		return r.failed(ctx, "push to", err)
	}
	if found, known := r.tip(ctx, command.Name); known && found != command.Old {
		if found == command.New {
			return nil
		}
		return o.leaseError(found)
	}
	return rejected(o.Branch, printable(status), said.String())
}

func updateRequest(advertised *packp.AdvRefs, command *packp.Command, pack io.Reader, said io.Writer) *packp.ReferenceUpdateRequest {
	request := packp.NewReferenceUpdateRequestFromCapabilities(advertised.Capabilities)
	if advertised.Capabilities.Supports(capability.Sideband64k) {
		_ = request.Capabilities.Set(capability.Sideband64k)
	}
	if pack == nil {
		pack = emptyPack()
	}
	request.Commands = []*packp.Command{command}
	request.Packfile = io.NopCloser(pack)
	request.Progress = said
	return request
}

// refused is the remote's reason not to take the push, "" when it took it or
// did not say.
func refused(report *packp.ReportStatus) string {
	switch {
	case report == nil:
		return ""
	case report.UnpackStatus != "ok":
		return report.UnpackStatus
	}
	for _, command := range report.CommandStatuses {
		if command.Error() != nil {
			return command.Status
		}
	}
	return ""
}

// tip asks anew where a branch is; known is false when that fails.
func (r Remote) tip(ctx context.Context, name plumbing.ReferenceName) (tip plumbing.Hash, known bool) {
	refs, err := List(ctx, r)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	return plumbing.NewHash(refs[name.String()]), true
}
