package forgetest

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
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

// octocat is who stands for an author that a test leaves out.
var octocat = User{Login: "octocat", ID: 583231, Type: "User"}

// Options says what a Forge is like.
type Options struct {
	Token string // the one that is let in; "" means one of the Forge's own
	User  User   // whose token it is; the zero User means octocat
	// Scopes are those of a classic token; nil means a token of another kind.
	Scopes []string
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
	mux    *http.ServeMux

	mu           sync.Mutex
	repositories []*Repository
	faults       []*fault
	before       func(Request) bool
	after        func(Request)
	signed       map[string]bool // commits that the forge signed
	requests     []Request
	undescribed  []string
	lastID       int64
	clock        time.Time
}

// Request is a request that arrived, answered or not.
type Request struct {
	Method string
	// Path is without /api/v3 for the REST API, and without query.
	Path       string
	Authorized bool   // the right token came with it
	Body       []byte // nil for those of git
}

// New starts a Forge without repositories. The end of the test stops it.
func New(t testing.TB, o Options) *Forge {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("the forge needs the git program: %v", err)
	}
	f := &Forge{
		Token: cmp.Or(o.Token, defaultToken), t: t, user: cmp.Or(o.User, octocat), scopes: o.Scopes, git: git, root: t.TempDir(), mux: http.NewServeMux(),
		clock: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), signed: map[string]bool{},
	}
	f.route()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL, f.APIURL = server.URL, server.URL+restPrefix
	return f
}

// Requests are all requests so far.
func (f *Forge) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// ServeHTTP answers one request. The body is read first, whatever the answer:
// a client that is still writing would lose it.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ends early", http.StatusBadRequest)
		return
	}
	call := &call{Request: r, body: body, credentials: f.credentialsOf(r)}
	request, reply, found := f.arrive(call)
	if found && !reply.Late {
		reply.write(w)
		return
	}
	f.watched(w, request, func(w http.ResponseWriter) {
		if found {
			f.serve(httptest.NewRecorder(), call)
			reply.write(w)
			return
		}
		f.serve(w, call)
	})
}

func (f *Forge) serve(w http.ResponseWriter, c *call) {
	if repository, service, found := f.gitService(c.Request); found {
		f.serveGit(w, c, repository, service)
		return
	}
	f.mux.ServeHTTP(w, c.WithContext(withCall(c.Context(), c)))
}

// arrive notes a call and finds the fault that is to be its answer.
func (f *Forge) arrive(c *call) (Request, Reply, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := Request{
		Method: c.Method, Path: strings.TrimPrefix(c.URL.Path, restPrefix),
		Authorized: c.credentials == right, Body: c.body,
	}
	if _, _, found := f.gitService(c.Request); found {
		request.Body = nil
	}
	f.requests = append(f.requests, request)
	reply, found := f.takeFault(request.Method, request.Path)
	return request, reply, found
}

// newID is one that no other object of the forge has.
func (f *Forge) newID() int64 {
	f.lastID++
	return f.lastID
}

// now is a second later each time, so that what happened later is known by its
// time.
func (f *Forge) now() time.Time {
	f.clock = f.clock.Add(time.Second)
	return f.clock
}
