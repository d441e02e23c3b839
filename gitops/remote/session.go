package remote

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// List reads the names and ids of all refs, HEAD among them; none for a
// repository without commits.
func List(ctx context.Context, r Remote) (map[string]string, error) {
	session, advertised, err := r.advertised(ctx, "list the branches of")
	if errors.Is(err, ErrEmpty) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return refsOf(advertised), nil
}

// advertised opens the side of a remote that gives objects, and reads which refs
// it has. The caller closes the session.
func (r Remote) advertised(ctx context.Context, doing string) (transport.UploadPackSession, *packp.AdvRefs, error) {
	session, err := r.uploadSession(ctx)
	if err != nil {
		return nil, nil, r.failed(ctx, doing, err)
	}
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		_ = session.Close()
		return nil, nil, r.failed(ctx, doing, err)
	}
	return session, refs, nil
}

func refsOf(advertised *packp.AdvRefs) map[string]string {
	refs := make(map[string]string, len(advertised.References)+1)
	for name, id := range advertised.References {
		refs[name] = id.String()
	}
	if advertised.Head != nil {
		refs["HEAD"] = advertised.Head.String()
	}
	return refs
}

// uploadSession opens the side of a remote that gives objects.
func (r Remote) uploadSession(ctx context.Context) (transport.UploadPackSession, error) {
	endpoint, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	switch endpoint.Protocol {
	case "file":
		return localUploadSession(endpoint)
	case "ssh":
		return dialSSH(ctx, transport.UploadPackServiceName, endpoint)
	}
	return httpUploadSession(r, endpoint)
}

// receiveSession opens the side of a remote that takes objects.
func (r Remote) receiveSession(ctx context.Context, o PushOptions) (transport.ReceivePackSession, error) {
	endpoint, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	switch {
	case endpoint.Protocol == "file" && o.Git != "":
		return receiveHere(ctx, o, endpoint.Path)
	case endpoint.Protocol == "file":
		return directReceiveSession(endpoint)
	case endpoint.Protocol == "ssh":
		return dialSSH(ctx, transport.ReceivePackServiceName, endpoint)
	}
	return httpReceiveSession(r, endpoint)
}
