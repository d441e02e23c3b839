package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// LFSObject is the content of a Git LFS file.
type LFSObject struct {
	OID  string // SHA-256 in hex
	Size int64
	Open func(ctx context.Context) (*os.File, error) // nil if the content is not here
}

// missing is the error of a content that neither side has. The agent can write any pointer, and a bundle
// may have lost its contents: whoever checks the branch out would fail.
func (o LFSObject) missing() error {
	return lfsErrorf("the content of the object %.12s is neither here nor on the remote", o.OID)
}

// LFSError says why a remote did not take the contents of Git LFS files.
type LFSError struct{ Why string }

func (e *LFSError) Error() string { return "Git LFS: " + e.Why }

func lfsErrorf(format string, args ...any) error { return &LFSError{fmt.Sprintf(format, args...)} }

// UploadLFS makes sure that a remote has the contents of Git LFS files before a branch is pushed
// that needs them. Where they go the remote alone says: nothing that a commit has (.lfsconfig) is
// read. It is an *LFSError where the remote does not take them.
func UploadLFS(ctx context.Context, r Remote, branch string, list []LFSObject) error {
	if len(list) == 0 {
		return nil
	}
	if path, local := r.Local(); local {
		return keepLFS(ctx, path, list)
	}
	endpoint, err := r.endpoint()
	if err != nil {
		return r.failed(ctx, "push to", err)
	}
	if endpoint.Protocol == "ssh" {
		return lfsErrorf("contents go to https remotes alone, and this one is reached over ssh")
	}
	t, err := newHTTPTransport(r, endpoint)
	if err != nil {
		return err
	}
	defer t.base.CloseIdleConnections()
	up := lfsUpload{remote: r, transport: t, branch: branch}
	const atOnce = 100
	for some := range slices.Chunk(list, atOnce) {
		if err := up.batch(ctx, some); err != nil {
			if errors.As(err, new(*LFSError)) {
				return err
			}
			return r.failed(ctx, "upload Git LFS files to", err)
		}
	}
	return nil
}

// keepLFS puts contents where git-lfs looks for those of a repository of this machine.
func keepLFS(ctx context.Context, path string, list []LFSObject) error {
	l, err := repository.LayoutAt(path)
	if err != nil {
		return err
	}
	store := lfs.Store{Own: filepath.Join(l.CommonDir, "lfs")}
	for _, o := range list {
		if store.Has(lfs.Pointer{OID: o.OID, Size: o.Size}) {
			continue
		}
		if o.Open == nil {
			return o.missing()
		}
		content, err := o.Open(ctx)
		if err != nil {
			return err
		}
		if err = errors.Join(store.Clean(ctx, content, true, io.Discard), content.Close()); err != nil {
			if errors.As(err, new(*lfs.LinkError)) {
				return lfsErrorf("%v", err)
			}
			return fmt.Errorf("keep Git LFS files in %s: %w", path, err)
		}
	}
	return nil
}

// lfsUpload speaks the batch API of Git LFS (docs/api/batch.md of git-lfs), whose transfer "basic"
// every server has.
type lfsUpload struct {
	remote    Remote
	transport *httpTransport
	branch    string
}

const lfsMedia = "application/vnd.git-lfs+json"

type (
	lfsRequest struct {
		Operation string     `json:"operation"`
		Transfers []string   `json:"transfers"`
		Ref       lfsRef     `json:"ref"`
		Objects   []lfsNamed `json:"objects"`
		HashAlgo  string     `json:"hash_algo"`
	}
	lfsRef struct {
		Name string `json:"name"`
	}
	lfsNamed struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	}
	lfsAnswer struct {
		Transfer string `json:"transfer"`
		Message  string `json:"message"`
		Objects  []struct {
			lfsNamed
			Actions map[string]lfsAction `json:"actions"`
			Error   *struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		} `json:"objects"`
	}
	lfsAction struct {
		Href   string            `json:"href"`
		Header map[string]string `json:"header"`
	}
)

func (u lfsUpload) batch(ctx context.Context, list []LFSObject) error {
	request := lfsRequest{Operation: "upload", Transfers: []string{"basic"}, Ref: lfsRef{"refs/heads/" + u.branch}, HashAlgo: "sha256"}
	byOID := map[string]LFSObject{}
	for _, o := range list {
		request.Objects, byOID[o.OID] = append(request.Objects, lfsNamed{o.OID, o.Size}), o
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := u.ask(ctx, body)
	if err != nil {
		return err
	}
	if answer.Transfer != "" && answer.Transfer != "basic" {
		return lfsErrorf("the server wants the transfer %.40q, which is not known here", answer.Transfer)
	}
	answered := map[string]bool{}
	for _, o := range answer.Objects {
		ours, known := byOID[o.OID]
		switch {
		case !known:
			continue
		case o.Error != nil:
			return lfsErrorf("the server refuses the object %.12s: %d %s", o.OID, o.Error.Code, said(o.Error.Message))
		}
		answered[o.OID] = true
		if err := u.take(ctx, ours, o.Actions); err != nil {
			return err
		}
	}
	for oid := range byOID {
		if !answered[oid] {
			return lfsErrorf("the server says nothing of the object %.12s", oid)
		}
	}
	return nil
}

// said is a few words of a server, printable.
func said(text string) string {
	w := &words{}
	_, _ = io.WriteString(w, text)
	return w.String()
}

func (u lfsUpload) ask(ctx context.Context, body []byte) (*lfsAnswer, error) {
	address, err := url.Parse(u.remote.URL)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", u.remote.Name())
	}
	address.User, address.RawQuery, address.Fragment = nil, "", ""
	address.Path = strings.TrimSuffix(strings.TrimSuffix(address.Path, "/"), ".git") + ".git/info/lfs/objects/batch"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", lfsMedia)
	request.Header.Set("Content-Type", lfsMedia)
	response, err := (&http.Client{Transport: u.transport, CheckRedirect: checkRedirect}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	const longest = 4 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err != nil {
		return nil, err
	}
	answer := &lfsAnswer{}
	err = json.Unmarshal(text, answer)
	switch code := response.StatusCode; {
	case code == http.StatusNotFound:
		return nil, lfsErrorf("the remote has none of it (404), or not for this token")
	case code != http.StatusOK:
		return nil, lfsErrorf("the server answers %d: %s", code, said(answer.Message))
	case err != nil:
		return nil, lfsErrorf("the answer of the server is not understood: %v", err)
	}
	return answer, nil
}

// take uploads one object, unless the server has it.
func (u lfsUpload) take(ctx context.Context, o LFSObject, actions map[string]lfsAction) error {
	upload, wanted := actions["upload"]
	if !wanted {
		return nil
	}
	if o.Open == nil {
		return o.missing()
	}
	content, err := o.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := u.send(ctx, http.MethodPut, upload, content, o.Size, "application/octet-stream"); err != nil {
		return err
	}
	verify, wanted := actions["verify"]
	if !wanted {
		return nil
	}
	body, err := json.Marshal(lfsNamed{o.OID, o.Size})
	if err != nil {
		return err
	}
	return u.send(ctx, http.MethodPost, verify, bytes.NewReader(body), int64(len(body)), lfsMedia)
}

// send does what the server asks for. It gets the credentials that it gave for that, and no others.
func (u lfsUpload) send(ctx context.Context, method string, a lfsAction, body io.Reader, size int64, media string) error {
	to, err := url.Parse(a.Href)
	if err != nil || to.Scheme != "https" && origin.Of(to) != u.transport.origin {
		return lfsErrorf("the server names an address that nothing is sent to")
	}
	request, err := http.NewRequestWithContext(ctx, method, a.Href, io.NopCloser(body))
	if err != nil {
		return err
	}
	request.ContentLength = size
	if size == 0 {
		request.Body = http.NoBody
	}
	request.Header.Set("Content-Type", media)
	for name, value := range a.Header {
		if !strings.EqualFold(name, "Transfer-Encoding") && !strings.EqualFold(name, "Content-Length") {
			request.Header.Set(name, value)
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := (&http.Client{Transport: u.transport.base, CheckRedirect: stay}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorReply)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return lfsErrorf("%s answers %d to an upload", to.Host, response.StatusCode)
	}
	return nil
}
