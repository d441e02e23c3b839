package forgetest

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// gitPath matches the path of a request of git, with or without .git after the name, as on
// github.com.
var gitPath = regexp.MustCompile(`^/([^/]+)/([^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack|info/lfs/objects/.+)$`)

// gitService returns the parts of a path that gitPath matches, and the service of git. For
// info/refs, the service is in the query.
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

// serveGit serves reads of public repositories to everybody, and other requests only with the valid
// token. Like github.com, it does not reveal which repositories exist without a token.
func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request, parts []string, service string) {
	writes := service == "git-receive-pack"
	f.mu.Lock()
	repository := f.repository(parts[1], parts[2])
	forbidden := writes && repository != nil && repository.forbidsPushes()
	f.mu.Unlock()
	credentials := f.credentialsOf(r)
	public := repository != nil && !repository.Private && !writes
	switch {
	case credentials == wrong, credentials == missing && !public:
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Authentication is needed.", http.StatusUnauthorized)
	case repository == nil:
		http.Error(w, "Repository not found.", http.StatusNotFound)
	case writes && repository.Archived:
		http.Error(w, "This repository was archived so it is read-only.", http.StatusForbidden)
	case forbidden:
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
	case strings.HasPrefix(parts[3], "info/lfs/"):
		f.serveLFS(w, r, repository.Dir, path.Base(parts[3]))
	case parts[3] == "git-receive-pack":
		f.watchPush(repository, func() { f.runGitService(w, r, repository.Dir, service) })
	default:
		f.runGitService(w, r, repository.Dir, service)
	}
}

// serveLFS serves Git LFS contents from the git folder. It supports downloads only.
func (f *Forge) serveLFS(w http.ResponseWriter, r *http.Request, gitFolder, name string) {
	if name != "batch" {
		if len(name) != sha256.Size*2 {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(gitFolder, "lfs", "objects", name[:2], name[2:4], name))
		return
	}
	type object struct {
		OID     string         `json:"oid"`
		Size    int64          `json:"size"`
		Actions map[string]any `json:"actions,omitempty"`
		Error   map[string]any `json:"error,omitempty"`
	}
	var batch struct {
		Operation string   `json:"operation"`
		Objects   []object `json:"objects"`
	}
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || batch.Operation != "download" {
		http.Error(w, `{"message":"Only downloads are known."}`, http.StatusUnprocessableEntity)
		return
	}
	for i, o := range batch.Objects {
		if len(o.OID) != sha256.Size*2 {
			continue
		}
		if _, err := os.Stat(filepath.Join(gitFolder, "lfs", "objects", o.OID[:2], o.OID[2:4], o.OID)); err != nil {
			batch.Objects[i].Error = map[string]any{"code": http.StatusNotFound, "message": "Object does not exist"}
			continue
		}
		href := "http://" + r.Host + strings.TrimSuffix(r.URL.Path, "batch") + o.OID
		batch.Objects[i].Actions = map[string]any{"download": map[string]any{"href": href, "header": map[string]string{"Authorization": r.Header.Get("Authorization")}}}
	}
	w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": batch.Objects})
}

// runGitService lets git serve a request of an existing repository, as git-http-backend(1) does, and saves
// the process of that program. git does not get the token.
func (f *Forge) runGitService(w http.ResponseWriter, r *http.Request, gitFolder, service string) {
	name := strings.TrimPrefix(service, "git-")
	if name != "upload-pack" && name != "receive-pack" {
		http.NotFound(w, r)
		return
	}
	protocol, answered := r.Header.Get("Git-Protocol"), "result"
	cmd := exec.Command(f.git, name, "--stateless-rpc", gitFolder)
	if path.Base(r.URL.Path) == "refs" {
		answered = "advertisement"
		cmd.Args = slices.Insert(cmd.Args, 3, "--advertise-refs")
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-"+answered)
	w.Header().Set("Cache-Control", "no-cache")
	if answered == "advertisement" && protocol != "version=2" {
		line := "# service=" + service + "\n"
		fmt.Fprintf(w, "%04x%s0000", len(line)+4, line)
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GIT_PROTOCOL=" + protocol}, gitEnviron...)
	cmd.Stdin, cmd.Stdout = body, w
	_ = cmd.Run() // git has told the client about its failure
}
