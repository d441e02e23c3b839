package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/origin"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// LFSObject is the content of a Git LFS file. Only an upload needs Open.
type LFSObject = lfs.Object

// missingError returns the error for a content that neither side has. Pointers can be invented by the
// agent, and a bundle may lack contents. Every checkout of the branch would fail.
func missingError(o LFSObject) error {
	return lfsErrorf("the content of the object %.12s is neither here nor on the remote", o.OID)
}

// LFSError reports that a remote did not accept or deliver contents of Git LFS files.
type LFSError struct{ Why string }

func (e *LFSError) Error() string { return "Git LFS: " + e.Why }

// lfsErrorf returns an *LFSError.
func lfsErrorf(format string, args ...any) error { return &LFSError{fmt.Sprintf(format, args...)} }

// UploadLFS uploads the contents that the remote does not have yet. Call it before the push. The
// address depends only on the remote: a commit's .lfsconfig is ignored. It returns an *LFSError if
// the server refuses.
func UploadLFS(ctx context.Context, r Remote, branch string, list []LFSObject) error {
	if path, local := r.Local(); local && len(list) > 0 {
		return storeLocally(ctx, path, list)
	}
	c := lfsClient{remote: r, operation: "upload", branch: branch}
	return c.transferAll(ctx, "upload Git LFS files to", list)
}

// DownloadLFS downloads the contents that folder does not have. folder has the layout of .git/lfs.
// branch may be "". The address depends only on the remote. If a content fails, the others are
// still downloaded; the result is the first *LFSError.
func DownloadLFS(ctx context.Context, r Remote, branch, folder string, list []LFSObject) error {
	store := lfs.Store{OwnFolder: folder}
	list = slices.DeleteFunc(slices.Clone(list), func(o LFSObject) bool { return store.Has(o.Pointer) })
	if path, local := r.Local(); local && len(list) > 0 {
		return copyFromLocal(ctx, path, store, list)
	}
	c := lfsClient{remote: r, operation: "download", branch: branch, store: store}
	err := c.transferAll(ctx, "download Git LFS files from", list)
	return cmp.Or(err, c.refused)
}

// storeLocally stores contents in a repository on this machine, where git-lfs finds them.
func storeLocally(ctx context.Context, path string, list []LFSObject) error {
	l, err := repository.LayoutAt(path)
	if err != nil {
		return err
	}
	store := lfs.Store{OwnFolder: filepath.Join(l.CommonDir, "lfs")}
	for _, o := range list {
		if o.Open == nil && !store.Has(o.Pointer) {
			return missingError(o)
		}
		if err := store.Take(ctx, o); err != nil {
			if errors.As(err, new(*lfs.LinkError)) {
				return lfsErrorf("%v", err)
			}
			return fmt.Errorf("keep Git LFS files in %s: %w", path, err)
		}
	}
	return nil
}

// copyFromLocal copies contents from a repository on this machine into a store. It returns the first
// missing content as an error, after copying the others.
func copyFromLocal(ctx context.Context, path string, into lfs.Store, list []LFSObject) (first error) {
	l, err := repository.LayoutAt(path)
	if err != nil {
		return err
	}
	folders, _, err := repository.ObjectFolders(l.CommonDir)
	if err != nil {
		return err
	}
	from := lfs.Store{Shared: lfs.ObjectFolders(folders)}
	for _, o := range list {
		content, err := from.Open(ctx, o.Pointer)
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*lfs.DamagedError)) {
			first = cmp.Or(first, lfsErrorf("%s does not have the object %.12s", path, o.OID))
			continue
		}
		if err == nil {
			err = errors.Join(into.Store(ctx, o.Pointer, content), content.Close())
		}
		if err != nil {
			return fmt.Errorf("copy Git LFS files from %s: %w", path, err)
		}
	}
	return first
}

// lfsClient is a client of the Git LFS batch API (docs/api/batch.md of git-lfs). It uses the
// transfer type "basic", which every server supports.
type lfsClient struct {
	remote    Remote
	transport *httpTransport
	operation string // upload or download
	branch    string
	store     lfs.Store // where downloads are stored
	refused   error     // the first *LFSError of a download, which does not stop the others
}

// transferAll transfers objects in batches of 100.
func (c *lfsClient) transferAll(ctx context.Context, doing string, list []LFSObject) error {
	if len(list) == 0 {
		return nil
	}
	to, err := c.remote.target()
	if err != nil {
		return c.remote.describeError(ctx, doing, err)
	}
	c.transport = newHTTPTransport(to)
	defer c.transport.base.CloseIdleConnections()
	const atOnce = 100
	for some := range slices.Chunk(list, atOnce) {
		if err := c.transferBatch(ctx, some); err != nil {
			if errors.As(err, new(*LFSError)) {
				return err
			}
			return c.remote.describeError(ctx, doing, err)
		}
	}
	return nil
}

const lfsMedia = "application/vnd.git-lfs+json"

type (
	lfsRequest struct {
		Operation string        `json:"operation"`
		Transfers []string      `json:"transfers"`
		Ref       *lfsRef       `json:"ref,omitempty"`
		Objects   []lfs.Pointer `json:"objects"`
		HashAlgo  string        `json:"hash_algo"`
	}
	lfsRef struct {
		Name string `json:"name"`
	}
	lfsAnswer struct {
		Transfer string `json:"transfer"`
		Message  string `json:"message"`
		Objects  []struct {
			lfs.Pointer
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

// transferBatch asks the server for the actions for objects, and transfers each. An object without an answer
// counts as failed.
func (c *lfsClient) transferBatch(ctx context.Context, list []LFSObject) error {
	request := lfsRequest{Operation: c.operation, Transfers: []string{"basic"}, HashAlgo: "sha256"}
	if c.branch != "" {
		request.Ref = &lfsRef{"refs/heads/" + c.branch}
	}
	unanswered := map[string]LFSObject{}
	for _, o := range list {
		request.Objects = append(request.Objects, o.Pointer)
		unanswered[o.OID] = o
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := c.requestBatch(ctx, body)
	if err != nil {
		return err
	}
	if answer.Transfer != "" && answer.Transfer != "basic" {
		return lfsErrorf("the server wants the transfer %.40q, which is not known here", answer.Transfer)
	}
	for _, object := range answer.Objects {
		o, asked := unanswered[object.OID]
		if !asked {
			continue
		}
		delete(unanswered, object.OID)
		switch {
		case object.Error != nil:
			err = lfsErrorf("the server refuses the object %.12s: %d %s", o.OID, object.Error.Code, printable(object.Error.Message))
		case c.operation == "upload":
			err = c.upload(ctx, o, object.Actions)
		default:
			err = c.download(ctx, o, object.Actions)
		}
		if err = c.continueAfter(err); err != nil {
			return err
		}
	}
	for _, o := range list {
		if _, ok := unanswered[o.OID]; ok {
			if err := c.continueAfter(lfsErrorf("the server says nothing of the object %.12s", o.OID)); err != nil {
				return err
			}
		}
	}
	return nil
}

// continueAfter returns nil if the transfer may continue after an object's error. Otherwise it returns the
// error.
func (c *lfsClient) continueAfter(err error) error {
	if c.operation == "download" && errors.As(err, new(*LFSError)) {
		c.refused = cmp.Or(c.refused, err)
		return nil
	}
	return err
}

// requestBatch sends a batch request and returns the reply. It returns an *LFSError if the server refuses.
func (c *lfsClient) requestBatch(ctx context.Context, body []byte) (*lfsAnswer, error) {
	address, err := url.Parse(c.transport.to.address)
	if err != nil {
		return nil, err
	}
	address.RawQuery, address.Fragment = "", ""
	address.Path = strings.TrimSuffix(strings.TrimSuffix(address.Path, "/"), ".git") + ".git/info/lfs/objects/batch"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", lfsMedia)
	request.Header.Set("Content-Type", lfsMedia)
	response, err := (&http.Client{Transport: c.transport, CheckRedirect: checkRedirect}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	const maxAnswer = 4 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	answer := &lfsAnswer{}
	err = plainjson.Unmarshal(text, answer) // an answer with another status may have no JSON
	switch code := response.StatusCode; {
	case code == http.StatusNotFound:
		return nil, lfsErrorf("the remote has none of it (404), or not for this token")
	case code != http.StatusOK:
		return nil, lfsErrorf("the server answers %d: %s", code, printable(answer.Message))
	case err != nil:
		return nil, lfsErrorf("the answer of the server is not understood: %v", err)
	}
	return answer, nil
}

// upload uploads an object unless the server has it, and lets the server verify it.
func (c *lfsClient) upload(ctx context.Context, o LFSObject, actions map[string]lfsAction) error {
	upload, wanted := actions["upload"]
	if !wanted {
		return nil
	}
	if o.Open == nil {
		return missingError(o)
	}
	content, err := o.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := c.sendBody(ctx, http.MethodPut, upload, content, o.Size, "application/octet-stream"); err != nil {
		return err
	}
	verify, wanted := actions["verify"]
	if !wanted {
		return nil
	}
	body, err := json.Marshal(o.Pointer)
	if err != nil {
		return err
	}
	return c.sendBody(ctx, http.MethodPost, verify, bytes.NewReader(body), int64(len(body)), lfsMedia)
}

// sendBody sends body to the address of an action. It follows no redirects.
func (c *lfsClient) sendBody(ctx context.Context, method string, a lfsAction, body io.Reader, size int64, media string) error {
	request, err := http.NewRequestWithContext(ctx, method, a.Href, io.NopCloser(body))
	if err != nil {
		return lfsErrorf("the server names no address")
	}
	request.ContentLength = size
	if size == 0 {
		request.Body = http.NoBody
	}
	request.Header.Set("Content-Type", media)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := c.sendAction(request, a, stay)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorReply)
	return nil
}

// download stores one object of the server.
func (c *lfsClient) download(ctx context.Context, o LFSObject, actions map[string]lfsAction) error {
	download, given := actions["download"]
	if !given {
		return lfsErrorf("the server names no address of the object %.12s", o.OID)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, download.Href, nil)
	if err != nil {
		return lfsErrorf("the server names no address of the object %.12s", o.OID)
	}
	response, err := c.sendAction(request, download, c.checkRedirect)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	err = c.store.Store(ctx, o.Pointer, response.Body)
	if errors.As(err, new(*lfs.OtherError)) || errors.Is(err, io.ErrUnexpectedEOF) {
		return lfsErrorf("%s does not give the object %.12s: %v", request.URL.Host, o.OID, err)
	}
	return err
}

// checkRedirect allows a download's redirect to an address that actions may use. Headers are dropped if
// the origin changes, because they may contain credentials.
func (c *lfsClient) checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case !c.allows(to.URL):
		return &origin.RedirectError{Why: fmt.Sprintf("%s leads to an address that nothing is fetched from", via[0].URL.Host)}
	case origin.Of(to.URL) != origin.Of(via[0].URL):
		to.Header = http.Header{}
	}
	return origin.CheckCount(via)
}

// allows reports whether an action may use an address: https, or the remote's own origin.
func (c *lfsClient) allows(u *url.URL) bool {
	return u.Scheme == "https" || origin.Of(u) == c.transport.to.origin
}

// sendAction sends the request of an action, with the headers that the server gave for it, but
// without the remote's credentials. The caller closes the body.
func (c *lfsClient) sendAction(request *http.Request, a lfsAction, redirect func(*http.Request, []*http.Request) error) (*http.Response, error) {
	if !c.allows(request.URL) {
		return nil, lfsErrorf("the server names an address that is not used: it is neither https nor of the remote")
	}
	for name, value := range a.Header {
		if !strings.EqualFold(name, "Transfer-Encoding") && !strings.EqualFold(name, "Content-Length") {
			request.Header.Set(name, value)
		}
	}
	response, err := (&http.Client{Transport: c.transport.base, CheckRedirect: redirect}).Do(request)
	if refused, ok := errors.AsType[*origin.RedirectError](err); ok {
		return nil, lfsErrorf("%v", refused)
	}
	if signed, ok := errors.AsType[*url.Error](err); ok { // drop the URL from the error: its query may be a credential
		return nil, fmt.Errorf("%s: %w", request.URL.Host, signed.Err)
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		_ = response.Body.Close()
		return nil, lfsErrorf("%s answers %d to a %s", request.URL.Host, response.StatusCode, c.operation)
	}
	return response, nil
}
