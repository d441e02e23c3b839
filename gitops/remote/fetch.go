package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// FetchOptions says which commit to fetch, and what is here already.
type FetchOptions struct {
	Commit  string   // hex id
	Have    []string // commits that are here, with all files
	Shallow []string // those whose parents are not here
	// Alone asks for the commit without its history, and with all of its
	// files. It is for a commit that has none of Have among its ancestors. A
	// remote that cannot do so sends the history too.
	Alone bool
}

// Fetch gives take a pack of one commit, its files and its history, as far as
// they are not those of the commits that are here. shallow are the commits in
// the pack whose parents are not. The errors are those of Push.
func Fetch(ctx context.Context, r Remote, o FetchOptions, take func(pack io.Reader, shallow []string) error) error {
	if !plumbing.IsHash(o.Commit) {
		return fmt.Errorf("fetch: %q is not the hex id of a commit", o.Commit)
	}
	session, advertised, err := r.advertised(ctx, "fetch from")
	if err != nil {
		return err
	}
	defer session.Close()
	request, err := o.request(advertised)
	if err != nil {
		return err
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return r.failed(ctx, "fetch from", err)
	}
	defer response.Close()
	said := &words{}
	pack := &noted{reader: regularfile.Until(ctx, demultiplexed(response, request.Capabilities, said))}
	var shallow []string
	for _, id := range response.Shallows {
		shallow = append(shallow, id.String())
	}
	err = take(pack, shallow)
	if pack.err != nil {
		return r.failed(ctx, "fetch from", fmt.Errorf("%w\n%s", pack.err, said))
	}
	return err
}

func (o FetchOptions) request(advertised *packp.AdvRefs) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	request.Wants = []plumbing.Hash{plumbing.NewHash(o.Commit)}
	for _, id := range o.Have {
		request.Haves = append(request.Haves, plumbing.NewHash(id))
	}
	if !advertised.Capabilities.Supports(capability.Shallow) {
		return request, nil
	}
	if o.Alone {
		request.Depth = packp.DepthCommits(1)
	}
	for _, id := range o.Shallow {
		request.Shallows = append(request.Shallows, plumbing.NewHash(id))
	}
	return request, request.Capabilities.Set(capability.Shallow)
}

// noted remembers what kept it from being read to its end.
type noted struct {
	reader io.Reader
	err    error
}

func (n *noted) Read(p []byte) (int, error) {
	count, err := n.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return count, err
}
