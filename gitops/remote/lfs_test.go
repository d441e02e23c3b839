package remote_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/must"
)

// lfsServer is a server of Git LFS with a store beside it, on a port of its own.
type lfsServer struct {
	requests []string
	answer   func(store string) string
	storeIs  int    // the status of the store
	content  string // that it gives
	leads    string // where it redirects to
}

func (s *lfsServer) start(t *testing.T) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	note := func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		s.requests = append(s.requests, fmt.Sprintf("%s %s auth=%s:%s given=%s %s", r.Method, r.URL.Path, user, password, r.Header.Get("X-Given"), body))
	}
	mux.HandleFunc("POST /o/r.git/info/lfs/objects/batch", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		_, _ = io.WriteString(w, s.answer("http://"+r.Host))
	})
	mux.HandleFunc("PUT /store/{oid}", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.WriteHeader(s.storeIs)
	})
	mux.HandleFunc("GET /store/{oid}", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		if s.leads != "" {
			http.Redirect(w, r, s.leads, http.StatusFound)
			return
		}
		w.WriteHeader(s.storeIs)
		_, _ = io.WriteString(w, s.content)
	})
	mux.HandleFunc("POST /verify", func(_ http.ResponseWriter, r *http.Request) { note(r) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

const abcOID = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"

func abcObject(t *testing.T) remote.LFSObject {
	t.Helper()
	file := filepath.Join(t.TempDir(), "abc")
	write(t, file, "abc\n")
	return remote.LFSObject{Pointer: lfs.Pointer{OID: abcOID, Size: 4}, Open: func(context.Context) (*os.File, error) { return os.Open(file) }}
}

func TestUploadLFS(t *testing.T) {
	upload := func(actions string) func(string) string {
		return func(store string) string {
			return fmt.Sprintf(`{"transfer":"basic","objects":[{"oid":%q,"size":4,"actions":{%s}}]}`, abcOID, strings.ReplaceAll(actions, "STORE", store))
		}
	}
	put := "PUT /store/" + abcOID + " auth=: given=yes abc\n"
	for name, c := range map[string]struct {
		answer  func(string) string
		storeIs int
		want    []string // after the batch
		why     string
	}{
		"there already": {answer: upload("")},
		"uploaded": {
			answer: upload(`"upload":{"href":"STORE/store/` + abcOID + `","header":{"X-Given":"yes"}}`), storeIs: 200, want: []string{put},
		},
		"verified": {
			answer:  upload(`"upload":{"href":"STORE/store/` + abcOID + `","header":{"X-Given":"yes"}},"verify":{"href":"STORE/verify","header":{"X-Given":"too"}}`),
			storeIs: 200, want: []string{put, `POST /verify auth=: given=too {"oid":"` + abcOID + `","size":4}`},
		},
		"refused by the store": {
			answer: upload(`"upload":{"href":"STORE/store/` + abcOID + `","header":{"X-Given":"yes"}}`), storeIs: 403, want: []string{put}, why: "answers 403",
		},
		"refused": {
			answer: func(string) string {
				return `{"objects":[{"oid":"` + abcOID + `","error":{"code":422,"message":"over\nquota"}}]}`
			}, why: "422 over; quota",
		},
		"another transfer": {answer: func(string) string { return `{"transfer":"tus","objects":[]}` }, why: `the transfer "tus"`},
		"not answered":     {answer: func(string) string { return `{"objects":[]}` }, why: "says nothing of the object"},
		"no JSON":          {answer: func(string) string { return `<html>` }, why: "not understood"},
		"another host":     {answer: upload(`"upload":{"href":"http://192.0.2.1/x"}`), why: "an address that is not used"},
		"a file":           {answer: upload(`"upload":{"href":"file:///etc/passwd"}`), why: "an address that is not used"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &lfsServer{answer: c.answer, storeIs: c.storeIs}
			err := remote.UploadLFS(t.Context(), remote.Remote{URL: s.start(t) + "/o/r", Token: "secret"}, "agent-ci/x", []remote.LFSObject{abcObject(t)})
			if (err != nil) != (c.why != "") || err != nil && (!errors.As(err, new(*remote.LFSError)) || !strings.Contains(err.Error(), c.why)) {
				t.Errorf("got %v", err)
			}
			if len(s.requests) == 0 || strings.Join(s.requests[1:], "|") != strings.Join(c.want, "|") {
				t.Fatalf("requests: %q", s.requests)
			}
			head, body, _ := strings.Cut(s.requests[0], "{")
			var batch struct{ Operation string }
			if head != "POST /o/r.git/info/lfs/objects/batch auth=x-access-token:secret given= " || json.Unmarshal([]byte("{"+body), &batch) != nil || batch.Operation != "upload" {
				t.Errorf("asked by %s", s.requests[0])
			}
		})
	}
}

func TestDownloadLFS(t *testing.T) {
	const missing = "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffff0000000011111111"
	download := func(href string) func(string) string {
		return func(store string) string {
			return fmt.Sprintf(`{"transfer":"basic","objects":[{"oid":%q,"size":9,"error":{"code":404,"message":"not here"}},`+
				`{"oid":%q,"size":4,"actions":{"download":{"href":%q,"header":{"X-Given":"yes"}}}}]}`, missing, abcOID, strings.ReplaceAll(href, "STORE", store))
		}
	}
	here := download("STORE/store/" + abcOID)
	get := "GET /store/" + abcOID + " auth=: given=yes "
	for name, c := range map[string]struct {
		server lfsServer
		asked  []string // after the batch
		why    string   // of the object that the server has; empty where it comes
	}{
		"downloaded":            {lfsServer{answer: here, storeIs: 200, content: "abc\n"}, []string{get}, ""},
		"another digest":        {lfsServer{answer: here, storeIs: 200, content: "abd\n"}, []string{get}, "the content has the SHA-256 "},
		"too short":             {lfsServer{answer: here, storeIs: 200, content: "abc"}, []string{get}, "the content has 3 bytes, not 4"},
		"too long":              {lfsServer{answer: here, storeIs: 200, content: "abc\nd"}, []string{get}, "the content has more than 4 bytes"},
		"endless":               {lfsServer{answer: here, storeIs: 200, content: strings.Repeat("x", 64<<20)}, []string{get}, "the content has more than 4 bytes"},
		"missing in the store":  {lfsServer{answer: here, storeIs: 404}, []string{get}, "answers 404 to a download"},
		"a private address":     {lfsServer{answer: download("http://192.0.2.1/x")}, nil, "an address that is not used"},
		"of this machine":       {lfsServer{answer: download("http://127.0.0.1:1/x")}, nil, "an address that is not used"},
		"a file":                {lfsServer{answer: download("file:///etc/passwd")}, nil, "an address that is not used"},
		"no address":            {lfsServer{answer: download("http://%zz")}, nil, "names no address"},
		"led to another host":   {lfsServer{answer: here, leads: "http://192.0.2.1/x"}, []string{get}, "leads to an address that nothing is fetched from"},
		"led to a file":         {lfsServer{answer: here, leads: "file:///etc/passwd"}, []string{get}, "leads to an address that nothing is fetched from"},
		"led round in a circle": {lfsServer{answer: here, leads: abcOID}, []string{get, get, get, get, get, get}, "more than five in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "lfs")
			list := []remote.LFSObject{{Pointer: lfs.Pointer{OID: abcOID, Size: 4}}, {Pointer: lfs.Pointer{OID: missing, Size: 9}}}
			r := remote.Remote{URL: c.server.start(t) + "/o/r.git", Token: "secret"}
			err := remote.DownloadLFS(t.Context(), r, "", folder, list)
			if !errors.As(err, new(*remote.LFSError)) || !strings.Contains(err.Error(), "aaaaaaaabbbb: 404 not here") {
				t.Errorf("of both: %v", err)
			}
			must.Same(t, strings.Join(c.asked, "|"), strings.Join(c.server.requests[1:], "|"), "requests")
			if !strings.HasPrefix(c.server.requests[0], "POST /o/r.git/info/lfs/objects/batch auth=x-access-token:secret given= {\"operation\":\"download\",\"transfers\":[\"basic\"],\"objects\":") {
				t.Errorf("asked by %s", c.server.requests[0])
			}
			kept := filesBelow(t, folder)
			if c.why == "" {
				if len(kept) != 1 || kept[0] != "objects/ed/ea/"+abcOID {
					t.Fatalf("kept: %q", kept)
				}
				asked := len(c.server.requests)
				if err := remote.DownloadLFS(t.Context(), r, "", folder, list[:1]); err != nil || len(c.server.requests) != asked {
					t.Errorf("again: %v, requests %q", err, c.server.requests[asked:])
				}
				return
			}
			must.Same(t, 0, len(kept), "kept", kept)
			if err := remote.DownloadLFS(t.Context(), r, "", folder, list[:1]); !errors.As(err, new(*remote.LFSError)) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("of the one: %v", err)
			}
		})
	}
}

func filesBelow(t *testing.T, folder string) (files []string) {
	t.Helper()
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must.Do(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// Another host gets neither the token nor the headers that the first one's server named.
func TestLFSCredentialsStayWithHost(t *testing.T) {
	var got []http.Header
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Clone())
		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/second", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, "abc\n")
	}))
	defer other.Close()
	if runtime.GOOS != "linux" {
		t.Skip("certificates are named by SSL_CERT_FILE on Linux alone")
	}
	trust(t, other)
	for name, s := range map[string]*lfsServer{
		"redirected": {leads: other.URL + "/first", answer: func(store string) string {
			return `{"objects":[{"oid":"` + abcOID + `","size":4,"actions":{"download":{"href":"` + store + "/store/" + abcOID + `","header":{"X-Given":"yes","Authorization":"Basic eA=="}}}}]}`
		}},
		"named": {answer: func(string) string {
			return `{"objects":[{"oid":"` + abcOID + `","size":4,"actions":{"download":{"href":"` + other.URL + `/first"}}}]}`
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			folder := t.TempDir()
			err := remote.DownloadLFS(t.Context(), remote.Remote{URL: s.start(t) + "/o/r", Token: "secret"}, "main", folder, []remote.LFSObject{{Pointer: lfs.Pointer{OID: abcOID, Size: 4}}})
			if kept := filesBelow(t, folder); err != nil || len(kept) != 1 {
				t.Errorf("%v, kept %q", err, kept)
			}
			must.Same(t, 2, len(got), "requests there")
			for _, h := range got {
				must.Same(t, "", h.Get("Authorization"), h)
				must.Same(t, "", h.Get("X-Given"), h)
			}
		})
	}
}

// trust has the process trust a server. The certificates of the system are read once: every server of
// httptest has the same.
func trust(t *testing.T, server *httptest.Server) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trusted.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	t.Setenv("SSL_CERT_FILE", file)
}

func TestDownloadLFSVerifiesLocalContent(t *testing.T) {
	o := newOrigin(t)
	folder := filepath.Join(t.TempDir(), "lfs")
	download := func() error {
		return remote.DownloadLFS(t.Context(), remote.Remote{URL: o.bare}, "main", folder, []remote.LFSObject{{Pointer: lfs.Pointer{OID: abcOID, Size: 4}}})
	}
	if err := download(); !errors.As(err, new(*remote.LFSError)) || !strings.Contains(err.Error(), "does not have the object edeaaff3f177") {
		t.Errorf("a content that is missing: %v", err)
	}
	object := filepath.Join(o.bare, "lfs", "objects", "ed", "ea", abcOID)
	for _, content := range []string{"abd\n", "abc\n"} {
		write(t, object, content)
		err, kept := download(), filesBelow(t, folder)
		if good := content == "abc\n"; (err == nil) != good || (len(kept) == 1) != good {
			t.Errorf("%q: %v, kept %q", content, err, kept)
		}
	}
}
