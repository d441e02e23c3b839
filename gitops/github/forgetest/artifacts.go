package forgetest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Artifact is an artifact of a workflow run to add.
type Artifact struct {
	Name    string
	Zip     []byte // the archive, or any bytes
	Size    int64  // the size that the forge reports; 0 means the size of Zip
	Expired bool
	// At is the target URL of download redirects. "" means the forge's own store. That is
	// outside its API, because GitHub also uses another host.
	At string
}

type artifact struct {
	Artifact
	id, run int64
	created time.Time
}

// storePath is where the forge stores archives and logs. A request needs no token, but must have
// the query signed.
const (
	storePath = "/store/"
	signed    = "?sig=forgetest"
)

func (a *artifact) storedAt() string { return fmt.Sprintf("%sartifacts/%d.zip", storePath, a.id) }

// AddArtifact adds an artifact to a workflow run and returns its id. The workflow run need not
// exist.
func (r *Repository) AddArtifact(run int64, a Artifact) int64 {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	if !slices.Contains(r.workflowRuns, run) {
		r.workflowRuns = append(r.workflowRuns, run)
	}
	added := &artifact{Artifact: a, id: r.forge.newID(), run: run, created: r.forge.now()}
	r.artifacts = append(r.artifacts, added)
	return added.id
}

// listArtifacts lists the artifacts of a workflow run, the newest first unless the call asks
// otherwise.
func listArtifacts(f *Forge, c *call) answer {
	run, err := strconv.ParseInt(c.PathValue("run"), 10, 64)
	if err != nil || !slices.Contains(c.repository.workflowRuns, run) {
		return notFound()
	}
	name := c.URL.Query().Get("name")
	var list []*artifact
	for _, a := range c.repository.artifacts {
		if a.run == run && (name == "" || a.Name == name) {
			list = append(list, a)
		}
	}
	if c.URL.Query().Get("direction") != "asc" {
		slices.Reverse(list)
	}
	return countedPage(f, c, "artifacts", list, showArtifact)
}

// showArtifact returns an artifact in GitHub's form.
func showArtifact(a *artifact) object {
	return object{
		"id": a.id, "name": a.Name, "size_in_bytes": cmp.Or(a.Size, int64(len(a.Zip))), "expired": a.Expired, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256(a.Zip)),
		"created_at": a.created, "updated_at": a.created, "expires_at": a.created.Add(14 * 24 * time.Hour), "workflow_run": object{"id": a.run},
	}
}

// downloadArtifact redirects a request with the token to the archive. Like github.com, it requires
// a token even for public repositories.
func downloadArtifact(f *Forge, c *call) answer {
	a := c.repository.artifactByID(c.PathValue("id"))
	switch {
	case c.credentials != right:
		return failure(http.StatusUnauthorized, "Requires authentication")
	case a == nil || c.PathValue("format") != "zip":
		return notFound()
	case a.Expired:
		return failure(http.StatusGone, "Artifact has expired")
	}
	return answer{status: http.StatusFound, location: cmp.Or(a.At, f.URL+a.storedAt()+signed)}
}

func (r *Repository) artifactByID(id string) *artifact {
	for _, a := range r.artifacts {
		if strconv.FormatInt(a.id, 10) == id {
			return a
		}
	}
	return nil
}

// serveStore serves an archive or a log to everybody who has its address.
func (f *Forge) serveStore(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	content := f.readStored(r.URL.Path)
	f.mu.Unlock()
	if content == nil || "?"+r.URL.RawQuery != signed {
		http.Error(w, "AuthenticationFailed", http.StatusForbidden)
		return
	}
	_, _ = io.Copy(w, content)
}

// readStored returns the content at a path of the store, or nil.
func (f *Forge) readStored(path string) io.Reader {
	for _, repository := range f.repositories {
		for _, a := range repository.artifacts {
			if path == a.storedAt() {
				return bytes.NewReader(a.Zip)
			}
		}
		for _, w := range repository.workflows {
			for _, job := range w.jobs {
				switch {
				case path != job.storedAt():
				case job.LogBytes > 0:
					return io.MultiReader(io.LimitReader(&repeated{text: []byte(job.Log)}, job.LogBytes), strings.NewReader(job.Log))
				default:
					return strings.NewReader(job.Log)
				}
			}
		}
	}
	return nil
}

// repeated is a text again and again.
type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
