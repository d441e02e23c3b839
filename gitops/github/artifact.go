package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

const (
	// maxArtifacts is the largest number of artifacts listed for one run, the newest first.
	maxArtifacts = 500

	// downloadTimeout is the time limit for downloading an artifact.
	downloadTimeout = 15 * time.Minute
)

// Artifact is an archive that a workflow run uploaded. The workflow chooses all fields.
type Artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Expired bool   `json:"expired"`
	Digest  string `json:"digest"` // digest of the archive, "sha256:" and hex digits; "" for an old artifact
}

// readActions is the permission to read artifacts.
const readActions = "actions: read"

// Artifacts lists the artifacts of a workflow run in repository OWNER/NAME, newest first.
func (c *Client) Artifacts(ctx context.Context, repositoryName string, run int64) ([]Artifact, error) {
	r := c.repository(repositoryName)
	call := apiCall{action: fmt.Sprintf("list the artifacts of run %d in %.100s", run, r.fullName), permission: readActions}
	var all []Artifact
	err := r.runCall(ctx, call, func() error {
		for page := 1; len(all) < maxArtifacts; page++ {
			var reply struct{ Artifacts []Artifact }
			path := fmt.Sprintf("repos/%s/actions/runs/%d/artifacts?per_page=%d&page=%d", r.fullName, run, pageSize, page)
			if err := r.sendJSON(ctx, http.MethodGet, path, nil, &reply); err != nil {
				return err
			}
			all = append(all, reply.Artifacts...)
			if len(reply.Artifacts) < pageSize {
				break
			}
		}
		return nil
	})
	return all, err
}

// DownloadArtifact writes the archive of an artifact to to. It fails if the archive has more than
// maxBytes bytes. The API usually redirects to another host, which gets neither the token nor
// Options.UserAgent. A wrong digest is an error, but is only detected after writing.
func (c *Client) DownloadArtifact(ctx context.Context, repositoryName string, a Artifact, to io.Writer, maxBytes int64) error {
	r := c.repository(repositoryName)
	call := apiCall{action: fmt.Sprintf("download the artifact %q of %.100s", c.printable(a.Name), r.fullName), permission: readActions}
	const expired = "it is not kept any more: artifacts are for as many days as retention-days of the workflow says"
	place, err := r.storageURL(ctx, call, fmt.Sprintf("artifacts/%d/zip", a.ID), expired)
	if err != nil {
		return err
	}
	if err := c.fetchArchive(ctx, place, a.Digest, to, maxBytes); err != nil {
		return c.downloadError(ctx, call, place, err)
	}
	return nil
}

// storageURL asks the API for the URL of an archive or log. path is relative to the repository's
// actions. expired is the advice in the error if GitHub has deleted the content.
func (r *repository) storageURL(ctx context.Context, call apiCall, path, expired string) (place *url.URL, err error) {
	err = r.runCall(ctx, call, func() (err error) {
		place, err = r.redirectTarget(ctx, "repos/"+r.fullName+"/actions/"+path)
		return err
	})
	if e, ok := errors.AsType[*forge.Error](err); ok && e.Status == http.StatusGone {
		e.Remedy = expired
	}
	return place, err
}

// redirectTarget returns the URL that the API redirects a request to. Any other reply is an error.
func (r *repository) redirectTarget(ctx context.Context, path string) (*url.URL, error) {
	request, err := r.rest.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	client := r.rest.Client()
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.Response.StatusCode == http.StatusFound {
			return http.ErrUseLastResponse // this is the URL; other redirects lead to a renamed repository
		}
		return transport.FollowWithinHost(req, via)
	}
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer transport.Discard(response)
	if response.StatusCode != http.StatusFound {
		if err := gh.CheckResponse(response); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("it answered %d and no place of it", response.StatusCode)
	}
	place, err := response.Location()
	if err != nil {
		return nil, errors.New("it names no place of it")
	}
	return place, nil
}

// openStorage requests a URL that the API has named.
func (c *Client) openStorage(ctx context.Context, place *url.URL) (*http.Response, error) {
	if err := c.checkStorageURL(ctx, place); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place.String(), nil)
	if err != nil {
		return nil, withoutAddress(err)
	}
	request.Header.Set("User-Agent", defaultUserAgent)
	response, err := c.newStorageClient().Do(request)
	if err != nil {
		return nil, withoutAddress(err)
	}
	if response.StatusCode != http.StatusOK {
		transport.Discard(response)
		return nil, fmt.Errorf("it answered %d", response.StatusCode)
	}
	return response, nil
}

// fetchArchive downloads an archive from a URL that the API has named, and verifies its digest.
func (c *Client) fetchArchive(ctx context.Context, place *url.URL, digest string, to io.Writer, maxBytes int64) error {
	response, err := c.openStorage(ctx, place)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ContentLength > maxBytes {
		return tooLargeError(maxBytes)
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		return withoutAddress(err)
	}
	switch want, known := strings.CutPrefix(digest, "sha256:"); {
	case size > maxBytes:
		return tooLargeError(maxBytes)
	case known && want != hex.EncodeToString(sum.Sum(nil)):
		return errors.New("what came is not what the API tells the digest of")
	}
	return nil
}

// tooLargeError returns the error for an archive of more than maxBytes bytes.
func tooLargeError(maxBytes int64) error { return fmt.Errorf("it has more than %d MiB", maxBytes>>20) }

// downloadError describes a failed download without the URL, because its signature would give
// everybody access.
func (c *Client) downloadError(ctx context.Context, call apiCall, place *url.URL, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", call.action, ctx.Err())
	}
	e := &forge.Error{Kind: forge.Unavailable, Doing: call.action, Message: c.printable(place.Host + ": " + err.Error()), Remedy: "try again later", Err: err}
	if errors.As(err, new(*origin.RedirectError)) {
		e.Kind, e.Remedy = forge.Other, "check the API URL: GitHub keeps nothing there"
	}
	return e
}
