package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// call is a request with the objects that its path names.
type call struct {
	*http.Request
	body        []byte
	credentials credentials
	repository  *Repository
	issue       *issue
	comment     *comment
}

// handler answers a call. The forge is locked meanwhile.
type handler func(*Forge, *call) answer

var routes = map[string]handler{
	"GET /repos/{owner}/{repo}":                                       getRepository,
	"GET /repos/{owner}/{repo}/rules/branches/{branch}":               listRules,
	"GET /repos/{owner}/{repo}/rulesets/{id}":                         getRuleset,
	"GET /repos/{owner}/{repo}/branches/{branch}/protection":          getProtection,
	"GET /repos/{owner}/{repo}/git/ref/{ref...}":                      getRef,
	"GET /repos/{owner}/{repo}/git/commits/{sha}":                     getCommit,
	"POST /repos/{owner}/{repo}/git/blobs":                            withBody(createBlob),
	"POST /repos/{owner}/{repo}/git/trees":                            withBody(createTree),
	"POST /repos/{owner}/{repo}/git/commits":                          withBody(createCommit),
	"POST /repos/{owner}/{repo}/git/refs":                             withBody(createRef),
	"GET /repos/{owner}/{repo}/compare/{range...}":                    compareCommits,
	"GET /repos/{owner}/{repo}/actions/runs/{run}/artifacts":          listArtifacts,
	"GET /repos/{owner}/{repo}/actions/artifacts/{id}/{format}":       downloadArtifact,
	"GET /repos/{owner}/{repo}/collaborators/{login}/permission":      getPermission,
	"GET /repos/{owner}/{repo}/issues/{number}":                       ofIssue(getIssue),
	"GET /repos/{owner}/{repo}/issues/{number}/comments":              ofIssue(listComments),
	"POST /repos/{owner}/{repo}/issues/{number}/comments":             ofIssue(withBody(createComment)),
	"PATCH /repos/{owner}/{repo}/issues/comments/{id}":                ofComment(withBody(editComment)),
	"DELETE /repos/{owner}/{repo}/issues/comments/{id}":               ofComment(deleteComment),
	"POST /repos/{owner}/{repo}/issues/{number}/labels":               ofIssue(withBody(addLabels)),
	"POST /repos/{owner}/{repo}/issues/{number}/assignees":            ofIssue(withBody(addAssignees)),
	"GET /repos/{owner}/{repo}/pulls":                                 listPulls,
	"POST /repos/{owner}/{repo}/pulls":                                withBody(createPull),
	"GET /repos/{owner}/{repo}/pulls/{number}":                        ofPull(getPull),
	"GET /repos/{owner}/{repo}/pulls/{number}/comments":               ofPull(listReviewComments),
	"GET /repos/{owner}/{repo}/pulls/{number}/files":                  ofPull(listPullFiles),
	"GET /repos/{owner}/{repo}/pulls/{number}/reviews":                ofPull(listReviews),
	"POST /repos/{owner}/{repo}/pulls/{number}/reviews":               ofPull(withBody(createReview)),
	"PATCH /repos/{owner}/{repo}/pulls/{number}":                      ofPull(withBody(editPull)),
	"GET /repos/{owner}/{repo}/commits/{ref}/check-runs":              listCheckRuns,
	"GET /repos/{owner}/{repo}/commits/{ref}/status":                  combinedStatus,
	"GET /repos/{owner}/{repo}/commits/{ref}/pulls":                   pullsOfCommit,
	"GET /repos/{owner}/{repo}/activity":                              listActivity,
	"GET /repos/{owner}/{repo}/actions/runs/{run}":                    ofWorkflow(getWorkflowRun),
	"GET /repos/{owner}/{repo}/actions/runs/{run}/jobs":               ofWorkflow(listJobs),
	"GET /repos/{owner}/{repo}/actions/jobs/{id}/logs":                jobLog,
	"POST /repos/{owner}/{repo}/actions/runs/{run}/rerun-failed-jobs": ofWorkflow(rerunFailedJobs),
	"GET /repos/{owner}/{repo}/git/trees/{sha}":                       getTree,
	"GET /repos/{owner}/{repo}/git/blobs/{sha}":                       getBlob,
	"DELETE /repos/{owner}/{repo}/git/refs/{ref...}":                  deleteRef,
	"GET /repos/{owner}/{repo}/actions/secrets/public-key":            getSecretsKey,
	"GET /repos/{owner}/{repo}/actions/secrets/{name}":                getSecret,
	"PUT /repos/{owner}/{repo}/actions/secrets/{name}":                withBody(putSecret),
	"GET /repos/{owner}/{repo}/actions/permissions/workflow":          getWorkflowPermissions,
	"PUT /repos/{owner}/{repo}/actions/permissions/workflow":          withBody(setWorkflowPermissions),
	"POST /repos/{owner}/{repo}/labels":                               withBody(createLabel),
	"POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers":   ofPull(withBody(requestReviewers)),
}

// route registers the handlers of all routes.
func (f *Forge) route() {
	for pattern, handle := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		f.mux.HandleFunc(method+" "+restPrefix+path, f.httpHandler(func(f *Forge, c *call) answer {
			f.note(pattern, c)
			if reply, refused := f.admit(c); refused {
				return reply
			}
			return handle(f, c)
		}))
	}
	f.mux.HandleFunc("GET "+restPrefix+viewerPath, f.httpHandler(getViewer))
	f.mux.HandleFunc("GET "+restPrefix+"/search/code", f.httpHandler(searchCode))
	f.mux.HandleFunc("POST "+graphQLPath, f.httpHandler(answerGraphQL))
	f.mux.HandleFunc("GET "+storePath, f.serveStore)
	f.mux.HandleFunc("/", f.httpHandler(answerUnknown))
}

// httpHandler returns an HTTP handler that sends the answer of handle.
func (f *Forge) httpHandler(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // cannot fail: ServeHTTP has read it into memory
		c := &call{Request: r, body: body, credentials: f.credentialsOf(r)}
		f.mu.Lock()
		reply := handle(f, c)
		f.mu.Unlock()
		f.send(w, c, reply)
	}
}

func getRepository(f *Forge, c *call) answer {
	return ok(f.showRepository(c.repository))
}

// admit finds the repository of a call. It refuses a call that is not permitted.
func (f *Forge) admit(c *call) (refusal answer, refused bool) {
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
	case writes && c.Method != http.MethodDelete && len(c.body) > 0 && !json.Valid(c.body):
		return failure(http.StatusBadRequest, "Problems parsing JSON"), true
	}
	return answer{}, false
}

// ofIssue finds the issue or pull request that a path names.
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

// send writes an answer with the common headers. The reported rate limit is never used up.
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
	if reply.location != "" {
		header.Set("Location", reply.location)
	}
	if reply.body == nil {
		w.WriteHeader(reply.status)
		return
	}
	raw, err := json.Marshal(reply.body)
	// The schema of GraphQL checks its own answers. Answers about rules have fields that tests
	// choose.
	if err == nil && strings.HasPrefix(c.URL.Path, restPrefix) && !strings.Contains(c.URL.Path, "/rules/branches/") {
		raw, err = answersByCall().addRequiredFields(c.Method, strings.TrimPrefix(c.URL.EscapedPath(), restPrefix), reply.status, raw)
	}
	w.WriteHeader(reply.status)
	_, _ = w.Write(raw)
	if err != nil {
		f.mu.Lock()
		f.undescribed = append(f.undescribed, fmt.Sprintf("the answer to %s %s: %v", c.Method, c.URL.Path, err))
		f.mu.Unlock()
	}
}

const documentation = "https://docs.github.com/rest"

type object = map[string]any

type answer struct {
	status   int
	body     any
	link     string // the Link header
	location string // the Location header
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }

func failure(status int, message string) answer {
	return answer{status: status, body: object{
		"message": message, "documentation_url": documentation, "status": strconv.Itoa(status),
	}}
}

func notFound() answer       { return failure(http.StatusNotFound, "Not Found") }
func badCredentials() answer { return failure(http.StatusUnauthorized, "Bad credentials") }

// reason is a reason why a write was refused.
type reason struct {
	Resource string `json:"resource"`
	Field    string `json:"field,omitempty"`
	Code     string `json:"code"`
	Message  string `json:"message,omitempty"`
}

func invalid(reasons ...reason) answer {
	reply := unprocessable("Validation Failed")
	reply.body.(object)["errors"] = reasons
	return reply
}

// unprocessable returns a failure with status 422. Its body has no field status, unlike other
// failures, because GitHub's description has none there.
func unprocessable(message string) answer {
	return answer{status: http.StatusUnprocessableEntity, body: object{"message": message, "documentation_url": documentation}}
}

// refuse returns a refusal of a field with a message.
func refuse(resource, field, message string, args ...any) answer {
	return invalid(reason{Resource: resource, Field: field, Code: "custom", Message: fmt.Sprintf(message, args...)})
}

const (
	maxText  = 65536
	maxTitle = 256

	defaultPage = 30
	maxPage     = 100
)

// tooLong refuses a text that is longer than GitHub permits. Nil is not checked.
func tooLong(title, body *string) (refusal answer, refused bool) {
	switch {
	case title != nil && utf8.RuneCountInString(*title) > maxTitle:
		return refuse("Issue", "title", "title is too long (maximum is %d characters)", maxTitle), true
	case body != nil && utf8.RuneCountInString(*body) > maxText:
		return refuse("Issue", "body", "body is too long (maximum is %d characters)", maxText), true
	}
	return answer{}, false
}

// withBody decodes the body of a call and passes it to handle.
func withBody[T any](handle func(*Forge, *call, T) answer) handler {
	return func(f *Forge, c *call) answer {
		var sent T
		if err := json.Unmarshal(c.body, &sent); err != nil {
			return unprocessable("Invalid request.\n\n" + err.Error())
		}
		return handle(f, c, sent)
	}
}

// page answers with the page of a list that the call asks for.
func page[T any](f *Forge, c *call, list []T, show func(T) object) answer {
	size := min(queryNumber(c, "per_page", defaultPage), maxPage)
	number := queryNumber(c, "page", 1)
	last := max((len(list)+size-1)/size, 1)
	from := min((number-1)*size, len(list))
	to := min(from+size, len(list))
	reply := ok(showAll(list[from:to], show))
	reply.link = pageLinks(f, c, number, last)
	return reply
}

// countedPage answers like page, in an object with the total length of the list. Calls about Actions
// and checks have this form.
func countedPage[T any](f *Forge, c *call, name string, list []T, show func(T) object) answer {
	reply := page(f, c, list, show)
	reply.body = object{"total_count": len(list), name: reply.body}
	return reply
}

func queryNumber(c *call, name string, fallback int) int {
	number, err := strconv.Atoi(c.URL.Query().Get(name))
	if err != nil || number < 1 {
		return fallback
	}
	return number
}

// pageLinks returns the Link header of a page (RFC 8288).
func pageLinks(f *Forge, c *call, number, last int) string {
	var links []string
	link := func(to int, relation string) {
		query := c.URL.Query()
		query.Set("page", strconv.Itoa(to))
		links = append(links, fmt.Sprintf("<%s%s?%s>; rel=%q", f.URL, c.URL.EscapedPath(), query.Encode(), relation))
	}
	if number > 1 {
		link(number-1, "prev")
		link(1, "first")
	}
	if number < last {
		link(number+1, "next")
		link(last, "last")
	}
	return strings.Join(links, ", ")
}
