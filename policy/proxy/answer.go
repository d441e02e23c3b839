package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// reply is an answer of the proxy's own.
type reply struct {
	status    int
	phrase    string // of the status line; the only part of an answer to CONNECT that many programs show
	errorText string // of Proxy-Status (RFC 9209)
	body      string
}

// newRefusalReply returns the reply to a refused request, with rule, reason and remedy.
func newRefusalReply(request Request) reply {
	rule := cmp.Or(request.Rule, "no rule allows it")
	return reply{
		status: http.StatusForbidden, errorText: "http_request_denied",
		phrase: fmt.Sprintf("Refused by agent-ci (%s): %s %s", rule, request.Target, request.Reason),
		body:   request.Words() + "\n",
	}
}

// Words describes a refused request in one line: target, rule, reason, request and remedy.
func (r Request) Words() string {
	rule := ""
	if r.Rule != "" {
		rule = " (" + r.Rule + ")"
	}
	reason := r.Reason
	if r.Request != "" {
		reason += fmt.Sprintf(" The request was %q.", clip.Bytes(r.Request, 100))
	}
	return fmt.Sprintf("agent-ci refused to reach %q by %s%s. %s %s", r.Target, r.Protocol, rule, reason, r.Remedy)
}

// notRecordedReply answers every request after a failure to write the record.
var notRecordedReply = reply{
	status: http.StatusServiceUnavailable, errorText: "proxy_internal_error", phrase: "agent-ci can't record the request",
	body: "agent-ci could not record this request, and reaches nothing without a record.\n",
}

// bodyTooLongReply answers a request with a body above limits.bytes.
var bodyTooLongReply = reply{status: http.StatusRequestEntityTooLarge, errorText: "http_request_error", body: "agent-ci sends no body that long.\n"}

// connectFailureReply reports a failed connection to an allowed target.
func connectFailureReply(target string, err error) reply {
	r := reply{status: http.StatusBadGateway, errorText: "destination_unavailable", phrase: "agent-ci did not reach " + target}
	var lookup *net.DNSError
	var timeout interface{ Timeout() bool }
	var untrusted *tls.CertificateVerificationError
	why := "nothing answers there"
	viaErr, isViaErr := errors.AsType[*viaError](err)
	switch {
	case isViaErr && viaErr.timeout:
		r.status, r.errorText, why = http.StatusGatewayTimeout, "connection_timeout", viaErr.Error()
	case isViaErr && viaErr.protocol:
		r.errorText, why = "http_protocol_error", viaErr.Error()
	case isViaErr:
		why = viaErr.Error()
	case errors.As(err, &lookup) && lookup.IsNotFound:
		r.errorText, why = "dns_error", "no such name is known"
	case errors.As(err, &lookup):
		r.errorText, why = "dns_error", "its name can't be looked up just now"
	case errors.As(err, &untrusted):
		r.errorText, why = "tls_certificate_error", "nobody who is trusted here vouches for its certificate"
	case errors.As(err, &timeout) && timeout.Timeout():
		r.status, r.errorText, why = http.StatusGatewayTimeout, "connection_timeout", "it did not answer in time"
	}
	r.phrase += ": " + why
	r.body = fmt.Sprintf("agent-ci may reach %s for you, but %s.\n", target, why)
	return r
}

// respond writes a reply. For CONNECT it writes the raw response, with the reason in the status
// line, because few programs show a body there.
func (p *Proxy) respond(w http.ResponseWriter, r *http.Request, a reply) {
	if r.Method != http.MethodConnect {
		writeReply(w, a)
		return
	}
	p.work.Add(1)
	defer p.work.Done()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer p.closeAtEnd(client).Close()
	p.writeRaw(client, a, "Proxy-Status: agent-ci; error="+a.errorText+"\r\n")
}

// writeRaw writes a reply to a hijacked connection. header contains further lines of the header.
func (p *Proxy) writeRaw(conn net.Conn, reply reply, header string) {
	_ = conn.SetDeadline(time.Now().Add(p.limits.header))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n%s",
		reply.status, statusPhrase(reply.phrase), len(reply.body), header, reply.body)
	drainBeforeClose(conn)
}

// writeReply writes a reply to any request but CONNECT.
func writeReply(w http.ResponseWriter, reply reply) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Proxy-Status", "agent-ci; error="+reply.errorText)
	w.WriteHeader(reply.status)
	_, _ = io.WriteString(w, reply.body) // the client may have left
}

// drainBeforeClose reads pending input before the close. A reset could otherwise destroy the answer.
func drainBeforeClose(conn net.Conn) {
	const maxBytes, maxWait = 64 << 10, time.Second
	_ = closeWrite(conn)
	_ = conn.SetReadDeadline(time.Now().Add(maxWait))
	_, _ = io.CopyN(io.Discard, conn, maxBytes)
}

// statusPhrase makes text valid in a status line (RFC 9112, 4).
func statusPhrase(text string) string {
	const maxLength = 300
	clean := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
	return clean[:min(len(clean), maxLength)]
}
