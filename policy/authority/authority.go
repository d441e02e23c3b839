// Package authority owns the certificates of a run's proxy: an authority whose key exists only in
// this process's memory and whose names are limited to given hosts, and the trust stores for
// commands. It does not know the purpose of the hosts.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Certificates are valid from validBefore ago, because a clock may be late. They expire after
// validAfter, because a run may take days.
const (
	validBefore = time.Hour
	validAfter  = 7 * 24 * time.Hour
)

// Authority is a certificate authority for given hosts. It is safe for concurrent use.
type Authority struct {
	certificate []byte // PEM
	parsed      *x509.Certificate
	key         *ecdsa.PrivateKey
	hosts       []string // lower case

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by host
}

// New returns an authority for hosts: names or IP addresses. Name constraints make its certificates
// invalid for other hosts (RFC 5280, 4.2.1.10). The RFC includes names below the given ones, but Leaf
// refuses these.
func New(hosts []string) (*Authority, error) {
	a := &Authority{leaves: make(map[string]*tls.Certificate)}
	for _, host := range hosts {
		a.hosts = append(a.hosts, strings.ToLower(host))
	}
	template, err := newTemplate("agent-ci, for the hosts of one run's secrets")
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	limitToHosts(template, a.hosts)
	if a.key, err = newPrivateKey(); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	if a.parsed, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	a.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, nil
}

// limitToHosts limits an authority to hosts. Every kind of name gets a constraint, because a kind
// without one is unlimited.
func limitToHosts(template *x509.Certificate, hosts []string) {
	template.PermittedDNSDomainsCritical = true
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			bits := addr.BitLen()
			template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(bits, bits)})
		} else {
			template.PermittedDNSDomains = append(template.PermittedDNSDomains, host)
		}
	}
	const nobody = "invalid" // a domain that has no hosts (RFC 6761, 6.4)
	if len(template.PermittedDNSDomains) == 0 {
		template.PermittedDNSDomains = []string{nobody}
	}
	if len(template.PermittedIPRanges) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	template.PermittedEmailAddresses = []string{nobody}
	template.PermittedURIDomains = []string{nobody}
}

// Certificate returns the authority's certificate in PEM.
func (a *Authority) Certificate() []byte { return a.certificate }

// Leaf returns the certificate and key of one of the hosts, and an error for any other host. It
// creates the certificate at the first call.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	host = strings.ToLower(host)
	if !slices.Contains(a.hosts, host) {
		return nil, errors.New("the run's certificate authority is not for this host")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if cached := a.leaves[host]; cached != nil {
		return cached, nil
	}
	made, err := a.issue(host)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	a.leaves[host] = made
	return made, nil
}

// issue returns a new certificate and key for a host. The certificate is valid as long as the authority's.
func (a *Authority) issue(host string) (*tls.Certificate, error) {
	const longestName = 64 // longest common name (RFC 5280, A.1)
	name := host           // clients ignore it and check DNSNames or IPAddresses
	if len(name) > longestName {
		name = ""
	}
	template, err := newTemplate(name)
	if err != nil {
		return nil, err
	}
	template.NotBefore, template.NotAfter = a.parsed.NotBefore, a.parsed.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	key, err := newPrivateKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.parsed.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

func newPrivateKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// newTemplate returns a certificate with the fields that all certificates share, and a common name.
func newTemplate(name string) (*x509.Certificate, error) {
	const serialBits = 127 // 16 octets; a serial number has at most 20 (RFC 5280, 4.1.2.2)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		// One more, because 0 is no serial number.
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{Organization: []string{"agent-ci"}, CommonName: name},
		NotBefore: now.Add(-validBefore), NotAfter: now.Add(validAfter), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, nil
}
