// Package forgetest simulates GitHub for tests. It serves repositories, issues and pull requests
// over the REST and GraphQL calls that agent-ci uses, and git over smart HTTP on the same server.
// Requests change its state, and tests can read it. It knows nothing of agent-ci.
//
// Its replies fit GitHub's published description of the REST API. Where that says nothing, for
// example about refusals and their messages, it behaves like github.com.
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

	"github.com/agent-ci/agent-ci/policy/must"
)

const (
	restPrefix  = "/api/v3"
	graphQLPath = "/api/graphql"

	defaultToken = "forgetest-token-5e0c7a9b1d3f"
)

// octocat is the default author.
var octocat = User{Login: "octocat", ID: 583231, Type: "User"}

type Options struct {
	Token string // the valid token; "" means one that the forge chooses
	User  User   // account of the token; the zero User means octocat
	// Scopes are the scopes of a classic token. Nil means another kind of token.
	Scopes []string
	// Creations limits how fast content may be created.
	Creations Creations
	// Start starts the server. Nil starts it with plain http on loopback.
	Start func(*httptest.Server)
}

// Forge is a server with its repositories. Its methods are safe for concurrent use.
type Forge struct {
	URL    string // the git server is at URL/OWNER/NAME.git
	APIURL string // root of the REST API; the GraphQL API is at URL/api/graphql
	Token  string

	t      testing.TB
	user   User
	scopes []string
	git    string // path of the git program
	root   string // folder of the bare repositories
	mux    *http.ServeMux

	mu           sync.Mutex // guards what follows
	repositories []*Repository
	byName       map[string]*Repository // keys in lower case
	signed       map[string]bool        // commits that the forge signed
	traffic
	lastID int64
	clock  time.Time
}

// traffic has a forge's requests, and how it answers them otherwise than GitHub mostly does.
type traffic struct {
	faults      []*fault
	before      func(Request) bool
	after       func(Request)
	requests    []Request
	undescribed []string // requests and replies that do not fit GitHub's description
	creations   Creations
	created     []time.Time // when content was created
	limited     int         // number of requests above the limit
}

// Request is a request that the forge received, whether it was executed or not.
type Request struct {
	Method string
	// Path has no query, and no /api/v3 for the REST API.
	Path       string
	Authorized bool   // the request had the valid token
	Body       []byte // nil for requests of git
}

// New starts a forge without repositories. It stops at the end of the test. The test fails if a
// request or a reply of the REST API does not fit GitHub's description.
func New(t testing.TB, o Options) *Forge {
	t.Helper()
	git, err := exec.LookPath("git")
	must.Do(t, err, "the forge needs the git program")
	f := &Forge{
		Token: cmp.Or(o.Token, defaultToken), t: t, user: cmp.Or(o.User, octocat), scopes: o.Scopes, traffic: traffic{creations: o.Creations}, git: git, root: t.TempDir(), mux: http.NewServeMux(),
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

// ServeHTTP answers a request. It always reads the whole body first: a client that is still writing
// would lose the reply.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ends early", http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	request, reply, found := f.recordArrival(r, body)
	if found && !reply.Late {
		reply.write(w)
		return
	}
	f.serveWatched(w, request, func(w http.ResponseWriter) {
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

// recordArrival records a request. It returns the reply that a fault or the limit prescribes, if any.
func (f *Forge) recordArrival(r *http.Request, body []byte) (Request, Reply, bool) {
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

// newID returns an unused id.
func (f *Forge) newID() int64 {
	f.lastID++
	return f.lastID
}

// now returns the simulated time, which advances by a second per call. So all times are different
// and in order.
func (f *Forge) now() time.Time {
	f.clock = f.clock.Add(time.Second)
	return f.clock
}

// Reply is a reply that a test prescribes.
type Reply struct {
	Status int // 0 means 200; -1 closes the connection without a reply
	Header http.Header
	Body   string // JSON, unless Header has another type
	// Late means that the request is executed before the reply is sent.
	Late bool
}

type fault struct {
	method, pattern string
	reply           Reply
	left            int
}

// On sets the reply for the next matching requests, up to times times. The requests are not
// executed, unless the reply is Late. path is a Request.Path or a pattern of path.Match. If several
// replies match a request, the one set first is used first.
func (f *Forge) On(method, path string, reply Reply, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault{method, path, reply, times})
}

// takeFault returns the reply of the first matching fault that is not used up, and counts the use.
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

// write sends the reply, or closes the connection if the status is negative.
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

// Watch sets functions to call before and after each request. Nil calls nothing. If before returns
// false, the connection is closed and the request is not executed. Neither is called for a request
// that a fault answers, unless the reply is Late.
func (f *Forge) Watch(before func(Request) bool, after func(Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// serveWatched serves a request between the functions of Watch. It sends the reply after both have
// returned.
func (f *Forge) serveWatched(w http.ResponseWriter, request Request, serve func(http.ResponseWriter)) {
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
