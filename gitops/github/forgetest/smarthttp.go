package forgetest

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// gitPath is the path of a request of git: with or without .git, as on
// github.com.
var gitPath = regexp.MustCompile(`^/([^/]+)/([^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

// gitService gives the parts of gitPath in a request's path, and the service
// that is used: for info/refs it stands in the query.
func (f *Forge) gitService(r *http.Request) (parts []string, service string, found bool) {
	parts = gitPath.FindStringSubmatch(r.URL.Path)
	if parts == nil {
		return nil, "", false
	}
	service = parts[3]
	if service == "info/refs" {
		service = r.URL.Query().Get("service")
	}
	return parts, service, true
}

// serveGit lets everybody read what is public, and only the right token the
// rest. As on github.com, who has no token is not told what exists.
func (f *Forge) serveGit(w http.ResponseWriter, c *call, parts []string, service string) {
	f.mu.Lock()
	repository := f.repository(parts[1], parts[2])
	f.mu.Unlock()
	writes := service == "git-receive-pack"
	public := repository != nil && !repository.Private && !writes
	switch {
	case c.credentials == wrong, c.credentials == missing && !public:
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Authentication is needed.", http.StatusUnauthorized)
	case repository == nil:
		http.Error(w, "Repository not found.", http.StatusNotFound)
	case writes && repository.Archived:
		http.Error(w, "This repository was archived so it is read-only.", http.StatusForbidden)
	default:
		f.runBackend(w, c, "/"+repository.fullName()+".git/"+parts[3])
	}
}

// runBackend hands a request to git http-backend. CGI has no chunked bodies,
// in which git sends large packs; the token stays here.
func (f *Forge) runBackend(w http.ResponseWriter, c *call, path string) {
	backend := &cgi.Handler{
		Path: f.git, Args: []string{"http-backend"}, Dir: f.root,
		Logger: log.New(io.Discard, "", 0), Stderr: io.Discard, // of a client that goes away
		Env: append([]string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1"}, gitEnviron...),
	}
	if c.credentials == right {
		backend.Env = append(backend.Env, "REMOTE_USER="+f.user.Login)
	}
	r := c.Clone(c.Context())
	r.URL = &url.URL{Path: path, RawQuery: c.URL.RawQuery}
	r.Header.Del("Authorization")
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body)), nil
	backend.ServeHTTP(w, r)
}

// searchPath is PATH, or where git's own programs mostly are.
func searchPath() string {
	if path := os.Getenv("PATH"); strings.TrimSpace(path) != "" {
		return path
	}
	return "/usr/local/bin:/usr/bin:/bin"
}
