package forgetest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is a request with what the forge knows of it.
type call struct {
	*http.Request
	body        []byte
	credentials credentials
	repository  *Repository
	issue       *issue
	comment     *comment
}

// handler answers a call; the forge is locked meanwhile.
type handler func(*Forge, *call) answer

var routes = map[string]handler{
	"GET /repos/{owner}/{repo}":                                     getRepository,
	"GET /repos/{owner}/{repo}/git/ref/{ref...}":                    getRef,
	"GET /repos/{owner}/{repo}/git/commits/{sha}":                   getCommit,
	"POST /repos/{owner}/{repo}/git/blobs":                          reading(createBlob),
	"POST /repos/{owner}/{repo}/git/trees":                          reading(createTree),
	"POST /repos/{owner}/{repo}/git/commits":                        reading(createCommit),
	"POST /repos/{owner}/{repo}/git/refs":                           reading(createRef),
	"GET /repos/{owner}/{repo}/compare/{range...}":                  compareCommits,
	"GET /repos/{owner}/{repo}/milestones":                          listMilestones,
	"GET /repos/{owner}/{repo}/collaborators/{login}/permission":    getPermission,
	"GET /repos/{owner}/{repo}/issues/{number}":                     ofIssue(getIssue),
	"PATCH /repos/{owner}/{repo}/issues/{number}":                   ofIssue(reading(editIssue)),
	"GET /repos/{owner}/{repo}/issues/{number}/comments":            ofIssue(listComments),
	"POST /repos/{owner}/{repo}/issues/{number}/comments":           ofIssue(reading(createComment)),
	"PATCH /repos/{owner}/{repo}/issues/comments/{id}":              ofComment(reading(editComment)),
	"DELETE /repos/{owner}/{repo}/issues/comments/{id}":             ofComment(deleteComment),
	"POST /repos/{owner}/{repo}/issues/{number}/labels":             ofIssue(addLabels),
	"POST /repos/{owner}/{repo}/issues/{number}/assignees":          ofIssue(reading(addAssignees)),
	"GET /repos/{owner}/{repo}/pulls":                               listPulls,
	"POST /repos/{owner}/{repo}/pulls":                              reading(createPull),
	"GET /repos/{owner}/{repo}/pulls/{number}":                      ofPull(getPull),
	"GET /repos/{owner}/{repo}/pulls/{number}/comments":             ofPull(listReviewComments),
	"PATCH /repos/{owner}/{repo}/pulls/{number}":                    ofPull(reading(editPull)),
	"POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers": ofPull(reading(requestReviewers)),
}

func (f *Forge) route() {
	for pattern, handle := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		f.mux.HandleFunc(method+" "+restPrefix+path, f.answered(func(f *Forge, c *call) answer {
			f.note(pattern, c)
			if reply, refused := f.admit(c); refused {
				return reply
			}
			return handle(f, c)
		}))
	}
	f.mux.HandleFunc("GET "+restPrefix+viewerPath, f.answered(getViewer))
	f.mux.HandleFunc("POST "+graphQLPath, f.answered(answerGraphQL))
	f.mux.HandleFunc("/", f.answered(answerUnknown))
}

// answered serves the requests that handle answers.
func (f *Forge) answered(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // which ServeHTTP holds in memory
		c := &call{Request: r, body: body, credentials: f.credentialsOf(r)}
		f.mu.Lock()
		reply := handle(f, c)
		f.mu.Unlock()
		f.send(w, c, reply)
	}
}

func getRepository(f *Forge, c *call) answer { return ok(f.showFullRepository(c.repository)) }

// admit finds the repository of a call and says why the call is refused.
func (f *Forge) admit(c *call) (answer, bool) {
	c.repository = f.repository(c.PathValue("owner"), c.PathValue("repo"))
	writes := c.Method != http.MethodGet
	switch {
	case c.credentials == wrong:
		return badCredentials(), true
	case c.repository == nil, c.repository.Private && c.credentials == missing:
		return notFound(), true
	case writes && c.credentials == missing:
		return failure(http.StatusUnauthorized, "Requires authentication"), true
	case writes && c.repository.Archived:
		return failure(http.StatusForbidden, "Repository was archived so is read-only."), true
	case writes && c.Method != http.MethodDelete && !json.Valid(c.body):
		return failure(http.StatusBadRequest, "Problems parsing JSON"), true
	}
	return answer{}, false
}

// ofIssue finds the issue, which may be a pull request's, that a path names.
func ofIssue(handle handler) handler {
	return func(f *Forge, c *call) answer {
		number, err := strconv.Atoi(c.PathValue("number"))
		if err != nil {
			return notFound()
		}
		if c.issue = c.repository.issue(number); c.issue == nil {
			return notFound()
		}
		return handle(f, c)
	}
}

// ofComment finds the comment that a path names, and its issue.
func ofComment(handle handler) handler {
	return func(f *Forge, c *call) answer {
		id, err := strconv.ParseInt(c.PathValue("id"), 10, 64)
		if err != nil {
			return notFound()
		}
		if c.issue, c.comment = c.repository.commentByID(id); c.comment == nil {
			return notFound()
		}
		return handle(f, c)
	}
}

func ofPull(handle handler) handler {
	return ofIssue(func(f *Forge, c *call) answer {
		if c.issue.pull == nil {
			return notFound()
		}
		return handle(f, c)
	})
}

const (
	rateLimit          = 5000
	anonymousRateLimit = 60
)

// send writes an answer with the headers that each one has. The limits are
// never used up.
func (f *Forge) send(w http.ResponseWriter, c *call, reply answer) {
	limit := rateLimit
	if c.credentials != right {
		limit = anonymousRateLimit
	}
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(limit-1))
	header.Set("X-RateLimit-Used", "1")
	header.Set("X-RateLimit-Resource", "core")
	header.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
	if f.scopes != nil && c.credentials == right {
		header.Set("X-OAuth-Scopes", strings.Join(f.scopes, ", "))
	}
	if reply.link != "" {
		header.Set("Link", reply.link)
	}
	w.WriteHeader(reply.status)
	_ = json.NewEncoder(w).Encode(reply.body)
}
