// Package authority owns the certificates by which a run's proxy speaks TLS for others
// to the run's commands: an authority whose key is in the memory of this process alone
// and whose names are bound to the hosts that it is made for, and what commands have to
// find to trust it beside the machine's own authorities. It refuses to know which hosts
// these are and why.
package authority

import (
	"crypto/tls"
	"errors"
)

// Authority vouches for some hosts.
type Authority struct {
	certificate []byte // PEM
}

// New makes an authority for the hosts, names or addresses, and for nobody else (RFC
// 5280, 4.2.1.10).
func New(hosts []string) (*Authority, error) { return nil, errors.New("not made yet") }

// Certificate is the authority's own, in PEM.
func (a *Authority) Certificate() []byte { return a.certificate }

// Leaf gives the certificate of one of the hosts, with its key.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	return nil, errors.New("not made yet")
}

// SystemBundle are the authorities that the machine trusts, in PEM: those of the file
// that variable says SSL_CERT_FILE names, or of the usual places. It is empty where none
// is found.
func SystemBundle(variable func(name string) string) ([]byte, error) { return nil, nil }

// JavaStore is a trust store with the certificates of a bundle in PEM, in the format
// PKCS #12, which a Java runtime reads with the password "changeit".
func JavaStore(bundle []byte) ([]byte, error) { return nil, errors.New("not made yet") }
