package forgetest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// gitEnviron is all that git gets of its surroundings, beside PATH.
var gitEnviron = []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C"}

func (r *Repository) runGit(args ...string) (string, error) {
	return r.runGitWith(nil, "", args...)
}

func (r *Repository) runGitWith(env []string, input string, args ...string) (string, error) {
	cmd := exec.Command(r.forge.git, append([]string{"-C", r.Dir}, args...)...)
	cmd.Env = append(append([]string{"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")}, gitEnviron...), env...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, failed.Stderr)
	}
	return string(out), err
}

func (r *Repository) branch(name string) (string, bool) {
	out, err := r.runGit("show-ref", "--verify", "--hash", "refs/heads/"+name)
	return strings.TrimSpace(out), err == nil
}

func (r *Repository) empty() bool {
	out, err := r.runGit("for-each-ref", "--count=1")
	return err == nil && out == ""
}

var objectName = regexp.MustCompile(`^[0-9a-f]{40}$`)

type commit struct {
	sha, tree         string
	parents           []string
	author, committer signature
	message           string
}

type signature struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

const commitFormat = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"

// commit reads a commit; false when the repository has no such one.
func (r *Repository) commit(sha string) (commit, bool) {
	if !objectName.MatchString(sha) {
		return commit{}, false
	}
	out, err := r.runGit("log", "--max-count=1", "--no-show-signature", "--format="+commitFormat, sha)
	fields := strings.SplitN(out, "\x00", 10)
	if err != nil || len(fields) != 10 {
		return commit{}, false
	}
	return commit{
		sha: fields[0], tree: fields[1], parents: strings.Fields(fields[2]),
		author: signatureFrom(fields[3:6]), committer: signatureFrom(fields[6:9]),
		message: strings.TrimRight(fields[9], "\n"),
	}, true
}

func signatureFrom(fields []string) signature {
	date, _ := time.Parse(time.RFC3339, fields[2])
	return signature{fields[0], fields[1], date.UTC()}
}

// commitsBetween counts the commits that head has and base has not.
func (r *Repository) commitsBetween(base, head string) int {
	out, err := r.runGit("rev-list", "--count", base+".."+head)
	if err != nil {
		return 0
	}
	count, _ := strconv.Atoi(strings.TrimSpace(out))
	return count
}

type changes struct{ files, additions, deletions int }

func (r *Repository) changesBetween(base, head string) changes {
	out, _ := r.runGit("diff", "--numstat", base+"..."+head)
	var size changes
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		added, _ := strconv.Atoi(fields[0]) // "-" for a binary file
		deleted, _ := strconv.Atoi(fields[1])
		size.files, size.additions, size.deletions = size.files+1, size.additions+added, size.deletions+deleted
	}
	return size
}

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
