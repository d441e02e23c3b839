package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/remote"
)

// lfsServer is a server of Git LFS with a store beside it, on a port of its own.
type lfsServer struct {
	requests []string
	answer   func(store string) string
	storeIs  int // the status of the store
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
	mux.HandleFunc("POST /verify", func(_ http.ResponseWriter, r *http.Request) { note(r) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

const abcOID = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"

func abcObject(t *testing.T) remote.LFSObject {
	t.Helper()
	file := filepath.Join(t.TempDir(), "abc")
	if err := os.WriteFile(file, []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return remote.LFSObject{OID: abcOID, Size: 4, Open: func(context.Context) (*os.File, error) { return os.Open(file) }}
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
		"another host":     {answer: upload(`"upload":{"href":"http://192.0.2.1/x"}`), why: "an address that nothing is sent to"},
		"a file":           {answer: upload(`"upload":{"href":"file:///etc/passwd"}`), why: "an address that nothing is sent to"},
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

// A content that is not here is no matter if the remote has it.
func TestLFSContentThatIsNotHere(t *testing.T) {
	gone := remote.LFSObject{OID: abcOID, Size: 4}
	for actions, refused := range map[string]bool{``: false, `"upload":{"href":"https://127.0.0.1:1/x"}`: true} {
		s := &lfsServer{answer: func(string) string {
			return fmt.Sprintf(`{"objects":[{"oid":%q,"size":4,"actions":{%s}}]}`, abcOID, actions)
		}}
		err := remote.UploadLFS(t.Context(), remote.Remote{URL: s.start(t) + "/o/r"}, "x", []remote.LFSObject{gone})
		if (err != nil) != refused || refused && (!errors.As(err, new(*remote.LFSError)) || !strings.Contains(err.Error(), "neither here nor on the remote")) {
			t.Errorf("%s: %v", actions, err)
		}
	}
}

func TestLFSWhereItIsNotTaken(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, url := range []string{server.URL + "/o/r.git", "git@example.com:o/r.git"} {
		err := remote.UploadLFS(t.Context(), remote.Remote{URL: url}, "x", []remote.LFSObject{abcObject(t)})
		if !errors.As(err, new(*remote.LFSError)) {
			t.Errorf("%s: %v", url, err)
		}
		if err := remote.UploadLFS(t.Context(), remote.Remote{URL: url}, "x", nil); err != nil {
			t.Errorf("%s, nothing to upload: %v", url, err)
		}
	}
}
