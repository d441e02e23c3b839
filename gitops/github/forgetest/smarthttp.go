package forgetest

import (
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/url"
	"regexp"
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
func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request, parts []string, service string) {
	f.mu.Lock()
	repository := f.repository(parts[1], parts[2])
	f.mu.Unlock()
	credentials := f.credentialsOf(r)
	writes := service == "git-receive-pack"
	public := repository != nil && !repository.Private && !writes
	switch {
	case credentials == wrong, credentials == missing && !public:
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Authentication is needed.", http.StatusUnauthorized)
	case repository == nil:
		http.Error(w, "Repository not found.", http.StatusNotFound)
	case writes && repository.Archived:
		http.Error(w, "This repository was archived so it is read-only.", http.StatusForbidden)
	case parts[3] == "git-receive-pack":
		f.watchPush(repository, func() { f.runBackend(w, r, "/"+repository.fullName()+".git/"+parts[3]) })
	default:
		f.runBackend(w, r, "/"+repository.fullName()+".git/"+parts[3])
	}
}

// runBackend hands a request to git http-backend; the token stays here.
func (f *Forge) runBackend(w http.ResponseWriter, r *http.Request, path string) {
	backend := &cgi.Handler{
		Path: f.git, Args: []string{"http-backend"}, Dir: f.root,
		Logger: log.New(io.Discard, "", 0), Stderr: io.Discard, // of a client that goes away
		Env: append([]string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1"}, gitEnviron...),
	}
	if f.credentialsOf(r) == right {
		backend.Env = append(backend.Env, "REMOTE_USER="+f.user.Login)
	}
	handed := r.Clone(r.Context())
	handed.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
	handed.Header.Del("Authorization")
	backend.ServeHTTP(w, handed)
}
