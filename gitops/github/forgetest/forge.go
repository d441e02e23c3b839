// Package forgetest simulates GitHub for tests: repositories, issues and pull requests behind
// agent-ci's REST and GraphQL calls, and real git over smart HTTP on the same server. Requests
// change its state; tests read it. It knows nothing of agent-ci.
//
// Its answers match GitHub's published description of the REST API. For undescribed behaviour, such as
// refusals and their words, it follows github.com.
package forgetest

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	restPrefix  = "/api/v3"
	graphQLPath = "/api/graphql"

	defaultToken = "forgetest-token-5e0c7a9b1d3f"
)

// octocat is the default author.
var octocat = User{Login: "octocat", ID: 583231, Type: "User"}

type Options struct {
	Token string // the one that is let in; "" means one of the Forge's own
	User  User   // whose token it is; the zero User means octocat
	// Scopes are those of a classic token; nil means a token of another kind.
	Scopes []string
	// Creations bounds how fast content is created.
	Creations Creations
	// Start starts the server; nil means in the clear, on loopback.
	Start func(*httptest.Server)
}

// Forge is a server with its repositories. Its methods may be called at any
// time and from several goroutines.
type Forge struct {
	URL    string // the git server is at URL/OWNER/NAME.git
	APIURL string // of the REST API; the GraphQL API is at URL/api/graphql
	Token  string

	t      testing.TB
	user   User
	scopes []string
	git    string // the program
	root   string // of the bare repositories

	creations Creations
	mux       *http.ServeMux

	mu           sync.Mutex
	repositories []*Repository
	byName       map[string]*Repository // in lower case
	faults       []*fault
	before       func(Request) bool
	after        func(Request)
	signed       map[string]bool // commits that the forge signed
	requests     []Request
	undescribed  []string    // requests and answers that are not as GitHub describes them
	created      []time.Time // when content was created
	limited      int         // requests that came too fast
	lastID       int64
	clock        time.Time
}

// Request is a received request, answered or not.
type Request struct {
	Method string
	// Path is without /api/v3 for the REST API, and without query.
	Path       string
	Authorized bool   // the right token came with it
	Body       []byte // nil for those of git
}

// New starts a Forge without repositories. The end of the test stops it. The test fails if a request
// or an answer of the REST API does not fit GitHub's description.
func New(t testing.TB, o Options) *Forge {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("the forge needs the git program: %v", err)
	}
	f := &Forge{
		Token: cmp.Or(o.Token, defaultToken), t: t, user: cmp.Or(o.User, octocat), scopes: o.Scopes, creations: o.Creations, git: git, root: t.TempDir(), mux: http.NewServeMux(),
		clock: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), signed: map[string]bool{}, byName: map[string]*Repository{},
	}
	f.route()
	t.Cleanup(func() {
		for _, wrong := range f.undescribed {
			t.Error("GitHub describes it otherwise: " + wrong)
		}
	})
	server := httptest.NewUnstartedServer(f)
	if o.Start == nil {
		o.Start = (*httptest.Server).Start
	}
	o.Start(server)
	t.Cleanup(server.Close)
	f.URL, f.APIURL = server.URL, server.URL+restPrefix
	return f
}

func (f *Forge) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// ServeHTTP answers a request. It reads the body first in any case: a client still writing would
// lose the answer, and CGI does not support git's chunked bodies.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ends early", http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	request, reply, found := f.arrive(r, body)
	if found && !reply.Late {
		reply.write(w)
		return
	}
	f.watched(w, request, func(w http.ResponseWriter) {
		if found {
			f.serve(httptest.NewRecorder(), r)
			reply.write(w)
			return
		}
		f.serve(w, r)
	})
}

func (f *Forge) serve(w http.ResponseWriter, r *http.Request) {
	if repository, service, found := f.gitService(r); found {
		f.serveGit(w, r, repository, service)
		return
	}
	f.mux.ServeHTTP(w, r)
}

// arrive records a request and finds the fault set for it.
func (f *Forge) arrive(r *http.Request, body []byte) (Request, Reply, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := Request{
		Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, restPrefix),
		Authorized: f.credentialsOf(r) == right, Body: body,
	}
	if _, _, found := f.gitService(r); found {
		request.Body = nil
	}
	f.requests = append(f.requests, request)
	if reply, limited := f.limit(r); limited {
		return request, reply, true
	}
	reply, found := f.takeFault(request.Method, request.Path)
	return request, reply, found
}

// newID returns a unique id.
func (f *Forge) newID() int64 {
	f.lastID++
	return f.lastID
}

// now advances by a second per call, so times show the order.
func (f *Forge) now() time.Time {
	f.clock = f.clock.Add(time.Second)
	return f.clock
}

// Reply is an answer set by a test.
type Reply struct {
	Status int // 0 means 200; -1 ends the connection without an answer
	Header http.Header
	Body   string // JSON, unless Header says otherwise
	// Late executes the request before this reply.
	Late bool
}

type fault struct {
	method, pattern string
	reply           Reply
	left            int
}

// On sets the reply for the next matching requests, times times, before any other processing. path
// is Request.Path or a path.Match pattern. Several faults apply in order of their definition.
func (f *Forge) On(method, path string, reply Reply, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault{method, path, reply, times})
}

func (f *Forge) takeFault(method, name string) (Reply, bool) {
	for _, each := range f.faults {
		if each.left > 0 && each.method == method && each.matches(name) {
			each.left--
			return each.reply, true
		}
	}
	return Reply{}, false
}

func (f *fault) matches(name string) bool {
	matched, err := path.Match(f.pattern, name)
	return f.pattern == name || err == nil && matched
}

func (r Reply) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for name, values := range maps.All(r.Header) {
		w.Header()[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if r.Status < 0 {
		panic(http.ErrAbortHandler)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	_, _ = io.WriteString(w, r.Body)
}

// Watch calls before and after around each request; nil calls nothing. If before returns false, the
// connection ends without processing. Requests answered by a fault are not executed either.
func (f *Forge) Watch(before func(Request) bool, after func(Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// watched serves a request between the calls of Watch. Its answer is held until
// both have returned.
func (f *Forge) watched(w http.ResponseWriter, request Request, serve func(http.ResponseWriter)) {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil && !before(request) {
		panic(http.ErrAbortHandler)
	}
	if after == nil {
		serve(w)
		return
	}
	held := httptest.NewRecorder()
	serve(held)
	after(request)
	maps.Copy(w.Header(), held.Header())
	w.WriteHeader(held.Code)
	_, _ = held.Body.WriteTo(w)
}
