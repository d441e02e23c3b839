package attempts

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"
)

// What secrets of commands are for at Host of the world: PathOfHost, with GET alone, by
// the variable Placeholder; and fetching RepositoryOfHost, by GitPlaceholder.
const (
	PathOfHost       = "/team"
	RepositoryOfHost = "/owner/repository"
	GitPlaceholder   = "IN_GIT"
)

// ServeHost answers as Host: it echoes requests.
func ServeHost(w http.ResponseWriter, r *http.Request) {
	asked, err := httputil.DumpRequest(r, true)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("X-Asked", r.Header.Get("Authorization"))
	_, _ = w.Write(asked)
}

// tunnelAttempts misuse placeholders in a tunnel to their own host, which answers anything.
func tunnelAttempts() []Attempt {
	const right = PathOfHost + "/a"
	inside := func(name, method, path, header, body string) Attempt {
		return Attempt{Name: name, Served: true, Do: func(w World) error { return w.reach(w.Host, w.Host, w.fill(method, path, header, body)) }}
	}
	const bearer, git = "Authorization: Bearer PLACEHOLDER", "Authorization: Basic GIT"
	return []Attempt{
		inside("use a placeholder for another path", "GET", "/other/a", bearer, ""),
		inside("use a placeholder for a path that begins so", "GET", PathOfHost+"s", bearer, ""),
		inside("use a placeholder for a path that leads out", "GET", PathOfHost+"/%2e%2e/other", bearer, ""),
		inside("use a placeholder with another method", "DELETE", right, bearer, ""),
		inside("use a placeholder with a method that a header says", "GET", right, bearer+"\r\nX-HTTP-Method-Override: DELETE", ""),
		inside("use a placeholder in another header", "GET", right, "X-Other: PLACEHOLDER", ""),
		inside("use a placeholder as a cookie", "GET", right, "Cookie: a=PLACEHOLDER", ""),
		inside("use a placeholder in the path", "GET", right+"/PLACEHOLDER", "X-Other: a", ""),
		inside("use a placeholder in the query", "GET", right+"?a=PLACEHOLDER", "X-Other: a", ""),
		inside("use a placeholder in the body", "GET", right, bearer, "a=PLACEHOLDER"),
		inside("push with the placeholder of who fetches", "POST", RepositoryOfHost+".git/git-receive-pack", git, "0000"),
		inside("begin a push with the placeholder of who fetches", "GET", RepositoryOfHost+".git/info/refs?service=git-receive-pack", git, ""),
		inside("fetch another repository with a placeholder", "GET", "/owner/another.git/info/refs?service=git-upload-pack", git, ""),
		{Name: "use a placeholder with another Host in the tunnel", Served: true, Do: func(w World) error {
			return w.reach(w.Host, "other.siege.example", w.fill("GET", right, bearer, ""))
		}},
		{Name: "use a placeholder with another server name in the tunnel", Served: true, Do: func(w World) error {
			return w.reach("other.siege.example", w.Host, w.fill("GET", right, bearer, ""))
		}},
		{Name: "read the value of a secret in its host's answer", Served: true, Do: readEcho},
	}
}

// fill builds a request with %s for its host.
func (w World) fill(method, path, header, body string) string {
	password := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + w.variable(GitPlaceholder)))
	fill := strings.NewReplacer("%", "%%", "PLACEHOLDER", w.variable(w.Placeholder), "GIT", password)
	body = fill.Replace(body)
	return fill.Replace(method+" "+path+" HTTP/1.1\r\n"+header) + fmt.Sprintf("\r\nHost: %%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// variable returns a secret's variable: the secret itself without protection.
func (w World) variable(name string) string {
	if w.Bare {
		return Secret
	}
	return os.Getenv(name)
}

// reach succeeds if the host answers a request in its tunnel. A failed tunnel proves nothing.
func (w World) reach(serverName, host, request string) error {
	response, _, err := w.exchange(serverName, host, request)
	switch {
	case err != nil:
		return err
	case response.Header.Get("Proxy-Status") != "":
		return fmt.Errorf("it is refused with %s", response.Status)
	}
	return nil
}

// readEcho succeeds if the host's answer reveals the value.
func readEcho(w World) error {
	response, text, err := w.exchange(w.Host, w.Host, w.fill("GET", PathOfHost+"/a", "Authorization: Bearer PLACEHOLDER", ""))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(text, "Authorization: Bearer ") {
		panic("the host was not asked: " + response.Status + " " + text)
	}
	if strings.Contains(text, Secret) || strings.Contains(response.Header.Get("X-Asked"), Secret) {
		return nil
	}
	return ErrNothing
}

// exchange sends a request through a tunnel to Host, with TLS for a server name. The error comes
// from the TLS handshake.
func (w World) exchange(serverName, host, request string) (*http.Response, string, error) {
	conn := w.tunnel()
	defer conn.Close()
	bundle, err := os.ReadFile(cmp.Or(w.Trust, os.Getenv("SSL_CERT_FILE")))
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	inside := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: serverName, InsecureSkipVerify: serverName != w.Host, MinVersion: tls.VersionTLS12})
	if err := inside.Handshake(); err != nil {
		if serverName == w.Host {
			panic(err)
		}
		return nil, "", err
	}
	_, err = fmt.Fprintf(inside, request, host)
	check(err)
	response, err := http.ReadResponse(bufio.NewReader(inside), nil)
	check(err)
	text, err := io.ReadAll(response.Body)
	check(errors.Join(err, response.Body.Close()))
	return response, string(text), nil
}

// tunnel opens a tunnel through the proxy to Host. It panics if that fails, since nothing is proved then.
func (w World) tunnel() net.Conn {
	proxy, err := url.Parse(cmp.Or(w.Proxy, os.Getenv("HTTPS_PROXY")))
	check(err)
	const wait = 10 * time.Minute
	conn, err := net.DialTimeout("tcp", proxy.Host, wait)
	check(err)
	_ = conn.SetDeadline(time.Now().Add(wait))
	_, err = fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %[1]s:443\r\n\r\n", w.Host)
	check(err)
	head := bufio.NewReaderSize(conn, 16) // nothing comes behind the head before TLS is begun here
	response, err := http.ReadResponse(head, &http.Request{Method: http.MethodConnect})
	check(err)
	if response.StatusCode != http.StatusOK {
		panic("there is no tunnel to the host: " + response.Status)
	}
	return conn
}

// check aborts an attempt that could not be made, since it proves nothing.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
