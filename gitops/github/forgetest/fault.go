package forgetest

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
)

// Reply is an answer that a test sets.
type Reply struct {
	Status int // 0 means 200; -1 ends the connection without an answer
	Header http.Header
	Body   string // JSON, unless Header says otherwise
	// Late says that the request is carried out all the same, and this comes in
	// the place of its answer.
	Late bool
}

type fault struct {
	method, pattern string
	reply           Reply
	left            int
}

// On answers the next requests that match with reply, times times, before
// anything of the forge is looked at. The path is that of Request.Path, or a
// pattern of path.Match; several faults for one request come in the order in
// which they were set.
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

// Watch calls before and after with each request, before anything is done about
// it and after it was carried out, before its answer; nil calls nothing. Where
// before gives false the connection ends, and nothing is done. A request that a
// fault answers is not carried out either.
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
