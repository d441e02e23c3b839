package remote

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

type PushOptions struct {
	Branch string // without refs/heads/
	Commit string // hex id
	From   Store  // has the commit
	// Expected is the branch's current commit on the remote, or "" if the branch must not exist.
	// The remote checks it when the branch moves. The new commit need not descend from it.
	Expected string
}

// Push moves a branch of the remote to a commit, unless it is already there. It returns a
// *LeaseError, a *RejectedError, or an error that wraps ErrAuth, ErrForbidden, ErrNotFound or
// ErrUnreachable.
func Push(ctx context.Context, r Remote, o PushOptions) error {
	name := plumbing.NewBranchReferenceName(o.Branch)
	if o.Branch == "" || name.Validate() != nil {
		return fmt.Errorf("push: %q is not the name of a branch", o.Branch)
	}
	if !plumbing.IsHash(o.Commit) || o.Expected != "" && !plumbing.IsHash(o.Expected) {
		return fmt.Errorf("push %s: %q and %q must be hex ids of commits", o.Branch, o.Commit, o.Expected)
	}
	out, stderr, err := r.git(ctx, o.From, []string{"push", "--porcelain", "--quiet", "--no-verify", "--force-with-lease=" + name.String() + ":" + o.Expected}, o.Commit+":"+name.String())
	reason, refused := pushRefusal(out)
	if err == nil || !refused {
		return r.describeError(ctx, "push to", err)
	}
	branches, failed := Branches(ctx, r)
	found := branches[o.Branch]
	switch {
	case failed != nil:
		return failed
	case found == o.Commit:
		return nil
	case found != o.Expected:
		return &LeaseError{Branch: o.Branch, Expected: o.Expected, Found: found}
	}
	if _, why, ok := strings.Cut(stderr.local.String(), "remote unpack failed: "); ok {
		reason += ": " + why
	}
	return newRejectedError(o.Branch, printable(reason), printable(stderr.remote.String()))
}

// TryPush checks with a dry run whether this account may push to the remote. Some refusals, such as
// those of hooks, only occur at the real push. It returns the same error types as Push.
func TryPush(ctx context.Context, r Remote, o PushOptions) error {
	_, _, err := r.git(ctx, o.From, []string{"push", "--dry-run", "--porcelain", "--quiet", "--no-verify", "--force"}, o.Commit+":"+plumbing.NewBranchReferenceName(o.Branch).String())
	return r.describeError(ctx, "push to", err)
}

// pushRefusal returns the reason why git did not move the branch. out is the output of git push
// --porcelain. The reason is "stale info" for "!\tID:refs/heads/x\t[rejected] (stale info)".
func pushRefusal(out string) (status string, refused bool) {
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(fields) == 3 && fields[0] == "!" {
			_, status, _ = strings.Cut(fields[2], "] (")
			return strings.TrimSuffix(status, ")"), true
		}
	}
	return "", false
}
