package forgetest

import "net/http"

const viewerPath = "/user"

// answerViewer tells whose the token is.
func (f *Forge) answerViewer(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("GET "+viewerPath, c)
	reply := ok(f.showUser(f.user))
	if c.credentials != right {
		reply = failure(http.StatusUnauthorized, "Requires authentication")
	}
	f.send(w, c, reply)
}
