package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Explain returns why a request got no answer, without its address, whose query may be a credential, and without
// the names that Go gives to its steps.
func Explain(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		err = request.Err
	}
	var certificate *tls.CertificateVerificationError
	var lookup *net.DNSError
	var step *net.OpError
	var number syscall.Errno
	switch {
	case errors.As(err, &certificate):
		reason, _, _ := strings.Cut(strings.TrimPrefix(certificate.Err.Error(), "x509: "), " (possibly")
		return "the server's certificate is not trusted: " + reason + "; SSL_CERT_FILE can name a file with further authorities"
	case errors.As(err, &step) && step.Op == "proxyconnect":
		return "the proxy does not answer: " + Explain(step.Err)
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return lookup.Name + ": no such host"
	case errors.As(err, &step) && step.Addr != nil && errors.As(err, &number):
		return step.Addr.String() + ": " + number.Error()
	case errors.Is(err, io.EOF):
		return "the connection was closed without an answer"
	}
	return err.Error()
}

// RefusedByProxy is the OnProxyConnectResponse of transports. It returns an error if the proxy refuses a connection.
func RefusedByProxy(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return fmt.Errorf("the proxy %s asks for a user and a password (HTTP 407): put them into HTTPS_PROXY, as http://USER:PASSWORD@HOST:PORT", proxy.Host)
	}
	return fmt.Errorf("the proxy %s refuses the connection (HTTP %s)", proxy.Host, answer.Status)
}
