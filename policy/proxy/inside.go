package proxy

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// serveIntercepted answers a request in an intercepted tunnel.
func (p *Proxy) serveIntercepted(w http.ResponseWriter, r *http.Request) {
	p.work.Add(1)
	defer p.work.Done()
	select {
	case p.interceptor.slots <- struct{}{}:
		defer func() { <-p.interceptor.slots }()
	case <-r.Context().Done():
		return
	}
	tunnel := r.Context().Value(tunnelKey{}).(*interceptedConn)
	t := tunnel.target
	if reason := namesOtherTarget(r, t); reason != "" {
		p.refuseInTunnel(w, t, http.StatusMisdirectedRequest, policy.OtherTargetRefusal(p.options.Hosts.Credentials.Names(t), reason))
		return
	}
	exchanged, refused := p.guard.Exchange(r, t, tunnel.OnlyCredentials)
	if refused != nil {
		p.refuseInTunnel(w, t, http.StatusForbidden, policy.CredentialUseRefusal(refused))
		return
	}
	if r.ContentLength > p.limits.bytes {
		writeReply(w, bodyTooLongReply)
		return
	}
	p.sendIntercepted(w, r, exchanged, tunnel)
}

// recordUses records the credentials used in a request, and reports whether it could.
func (p *Proxy) recordUses(exchanged *credential.Exchange, t reach.Target) bool {
	if p.options.Used == nil {
		return true
	}
	for _, name := range exchanged.Uses {
		if p.options.Used(name, t) != nil {
			return false
		}
	}
	return true
}

// refuseInTunnel records a refusal inside a tunnel and answers with it.
func (p *Proxy) refuseInTunnel(w http.ResponseWriter, t reach.Target, status int, d policy.HostDecision) {
	request := Request{Protocol: reach.HTTPS, Target: t.String(), HostDecision: d}
	if p.options.Observe(request) != nil {
		writeReply(w, notRecordedReply)
		return
	}
	reply := newRefusalReply(request)
	reply.status = status
	writeReply(w, reply)
}

// namesOtherTarget describes a request for another target than its tunnel's, or returns "".
func namesOtherTarget(r *http.Request, t reach.Target) string {
	const otherHost = "The request is for another host or port than the tunnel that it goes through."
	switch {
	case r.Method == http.MethodConnect:
		return "The request asks for a tunnel inside of a tunnel."
	case r.URL.Scheme != "" && r.URL.Scheme != "https":
		return "The request inside the tunnel is for another scheme than https."
	case r.URL.User != nil:
		return "The request has a user or a password before the host."
	case r.URL.Host != "" && !isForTarget(r.URL.Host, t), !isForTarget(r.Host, t):
		return otherHost
	case slices.ContainsFunc(r.Header["Host"], func(host string) bool { return !isForTarget(host, t) }): // beside :authority
		return otherHost
	case r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/") || strings.ContainsFunc(r.URL.RawQuery, isUnprintable):
		return "The request is for no path of the host." // HTTP/2 permits spaces in the query
	case requestsUpgrade(r) && !requestsWebSocket(r):
		return "The request asks for another protocol than HTTP and WebSocket."
	case requestsWebSocket(r) && r.ContentLength != 0:
		return "The request for a WebSocket has a body."
	case connectionRemovesHeader(r):
		return "The header Connection takes another header out of the request."
	}
	return ""
}

// connectionRemovesHeader reports whether Connection lists an end-to-end header of the request. The host would
// not get that header, although the checks have read it.
func connectionRemovesHeader(r *http.Request) bool {
	for name := range connectionOptions(r.Header) {
		if len(r.Header[name]) > 0 && !slices.Contains(hopByHop, name) && name != "Content-Length" {
			return true
		}
	}
	return false
}

func isUnprintable(c rune) bool { return c <= ' ' || c == 0x7f }

// isForTarget reports whether host and port of a request are those of a target of HTTPS.
func isForTarget(authority string, t reach.Target) bool {
	parsed, err := reach.ParseTarget(reach.HTTPS, authority)
	if err != nil {
		parsed, err = reach.ParseTarget(reach.HTTPS, authority+":443")
	}
	return err == nil && parsed == t
}

// sendIntercepted sends a request to the tunnel's target over a pooled connection, with the values of
// credentials, and copies the answer.
func (p *Proxy) sendIntercepted(w http.ResponseWriter, r *http.Request, exchanged *credential.Exchange, tunnel *interceptedConn) {
	t := tunnel.target
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	idle := p.endWhenIdle(control, cancel)
	defer idle.stop()
	body, problem := p.searchBody(r, t, idle)
	switch {
	case problem != nil:
		writeReply(w, *problem)
		return
	case !p.recordUses(exchanged, t):
		writeReply(w, notRecordedReply)
		return
	}
	finishSearch := p.searchRestAfterAnswer(body, control, cancel)
	response, err := p.upstreamPool(tunnel).RoundTrip(p.interceptedRequest(ctx, r, exchanged, body, t, idle))
	if response != nil {
		defer response.Body.Close()
	} else {
		finishSearch()
	}
	switch refused := body.refusalReply(); {
	case refused != nil:
		writeReply(w, *refused)
	case err != nil:
		writeReply(w, dialFailureReply(t, err))
	case opensWebSocket(r, response):
		p.joinWebSocket(control, response, idle)
	case response.StatusCode < http.StatusOK: // 101: a protocol that the request did not ask for
		writeReply(w, connectFailureReply(t.String(), errors.New("no answer")))
	case mayBeCompressedText(response):
		writeReply(w, compressedReply)
	default:
		p.forwardAnswer(w, control, response, idle)
		finishSearch()
		if body.refusalReply() != nil {
			panic(http.ErrAbortHandler) // the client must not see a successful answer
		}
	}
}

// interceptedRequest returns the request for the target, with the values of credentials.
func (p *Proxy) interceptedRequest(ctx context.Context, r *http.Request, exchanged *credential.Exchange, body *searchedBody, t reach.Target, idle *idleTimer) *http.Request {
	from := *r
	from.URL, from.Header, from.Body = exchanged.URL, exchanged.Header, body
	from.URL.Scheme = "https"
	out := p.outgoingRequest(ctx, &from, t, idle)
	delete(out.Header, "Host")
	out.Header.Set("Accept-Encoding", "identity") // a compressed answer cannot be searched
	if strings.Contains(strings.ToLower(strings.Join(r.Header["Te"], ",")), "trailers") {
		out.Header.Set("Te", "trailers")
	}
	if requestsWebSocket(r) {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", "websocket")
		out.Header.Del("Sec-WebSocket-Extensions") // extensions compress, and compressed frames cannot be searched
	}
	return out
}

// forwardAnswer sends an answer to the client, without the values of credentials.
func (p *Proxy) forwardAnswer(w http.ResponseWriter, control *http.ResponseController, response *http.Response, idle *idleTimer) {
	p.guard.CleanHeader(response.Header)
	header := w.Header()
	copyEndToEndHeaders(header, response.Header)
	header.Del("Alt-Svc") // the proxy offers no alternative services
	for _, name := range []string{"Content-Type", "Date"} {
		if _, isSet := header[name]; !isSet {
			header[name] = nil // keeps net/http from adding its own
		}
	}
	p.guard.CleanHeader(response.Trailer) // it contains only names before the body is read
	announced := make(map[string]bool)
	for name := range response.Trailer {
		header.Del("Content-Length") // HTTP/1.1 permits trailers only after a chunked body
		header.Add("Trailer", name)
		announced[name] = true
	}
	p.copyAnswer(w, control, response, p.guard, idle)
	p.guard.CleanHeader(response.Trailer)
	for name, values := range response.Trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		header[name] = values
	}
}

// compressedReply replaces an answer with compressed text.
var compressedReply = reply{
	status: http.StatusBadGateway, errorText: "http_response_content_coding", phrase: "The answer is encoded",
	body: "agent-ci asked for an answer without content coding, to look for the values of secrets in it, and got text in one; it does not give that on.\n",
}

// mayBeCompressedText reports whether an answer may contain compressed text. Archives and other binary
// types are not searched.
func mayBeCompressedText(response *http.Response) bool {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(response.Header["Content-Encoding"], ",")))
	isPlain := coding == "" || coding == "identity"
	hasNoBody := response.ContentLength == 0 || response.Request.Method == http.MethodHead || response.StatusCode == http.StatusNotModified
	if isPlain || hasNoBody {
		return false
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	hasOneType := err == nil && len(response.Header["Content-Type"]) == 1
	return !hasOneType || !isBinary(kind)
}

// binaryKinds lists the binary content types of registries.
var binaryKinds = []string{
	"application/octet-stream", "application/gzip", "application/x-gzip", "application/x-compressed-tar", "application/zip", "application/x-zip-compressed",
	"application/tar", "application/x-tar", "application/tar+gzip", "application/x-bzip2", "application/x-xz", "application/zstd", "application/x-7z-compressed",
	"application/wasm", "application/java-archive", "application/x-java-archive", "application/vnd.android.package-archive", "application/pdf",
	"application/x-debian-package", "application/vnd.debian.binary-package", "application/x-rpm", "application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip",
	"application/x-git-upload-pack-result", "binary/octet-stream",
}

// isBinary reports whether a content type is binary.
func isBinary(kind string) bool {
	family, _, _ := strings.Cut(kind, "/")
	isMedia := slices.Contains([]string{"image", "audio", "video", "font"}, family) && !strings.Contains(kind, "xml")
	return isMedia || slices.Contains(binaryKinds, kind)
}
