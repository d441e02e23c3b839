package forgetest

import (
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
)

// Reply is an answer that a test sets.
type Reply struct {
	Status int // 0 means 200
	Header http.Header
	Body   string // JSON, unless Header says otherwise
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
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	_, _ = io.WriteString(w, r.Body)
}
