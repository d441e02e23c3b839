package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/agent-ci/agent-ci/policy/must"
)

func newAuthority(t *testing.T, hosts ...string) *Authority {
	t.Helper()
	return must.Get(New(hosts))(t)
}

func TestLeafIsTrusted(t *testing.T) {
	a := newAuthority(t, "npm.example.org", "10.1.2.3", "2606:2800:220:1::36")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Certificate())
	for _, host := range []string{"npm.example.org", "10.1.2.3", "2606:2800:220:1::36"} {
		leaf := must.Get(a.Leaf(host))(t)
		must.Do(t, must.Err(leaf.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots})), host)
		if again, err := a.Leaf(strings.ToUpper(host)); err != nil || again != leaf {
			t.Errorf("%s is made twice: %v", host, err)
		}
		if _, ok := leaf.PrivateKey.(*ecdsa.PrivateKey); !ok || time.Until(leaf.Leaf.NotAfter) > validAfter || time.Since(leaf.Leaf.NotBefore) < validBefore {
			t.Errorf("%s has a key %T, and is valid from %s to %s", host, leaf.PrivateKey, leaf.Leaf.NotBefore, leaf.Leaf.NotAfter)
		}
	}
	for _, host := range []string{"example.org", "below.npm.example.org", "10.1.2.4", ""} {
		must.Fail(t, "", must.Err(a.Leaf(host)), "there is a certificate for", host)
	}
}

// Whoever had the key could vouch for nobody else.
func TestAuthorityCoversOnlyItsHosts(t *testing.T) {
	name, address := newAuthority(t, "npm.example.org"), newAuthority(t, "10.1.2.3")
	for _, test := range []struct {
		name string
		of   *Authority
		leaf x509.Certificate
		host string
		fits bool
	}{
		{"its name", name, x509.Certificate{DNSNames: []string{"npm.example.org"}}, "npm.example.org", true},
		{"its address", address, x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 1, 2, 3)}}, "10.1.2.3", true},
		{"another name", name, x509.Certificate{DNSNames: []string{"github.com"}}, "github.com", false},
		{"a second name", name, x509.Certificate{DNSNames: []string{"npm.example.org", "github.com"}}, "github.com", false},
		{"a name that ends alike", name, x509.Certificate{DNSNames: []string{"evilnpm.example.org"}}, "evilnpm.example.org", false},
		{"a wildcard", name, x509.Certificate{DNSNames: []string{"*.example.org"}}, "npm.example.org", false},
		{"an address", name, x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 1, 2, 3)}}, "10.1.2.3", false},
		{"an address of IPv6", name, x509.Certificate{IPAddresses: []net.IP{net.ParseIP("2606::1")}}, "2606::1", false},
		{"another address", address, x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 1, 2, 4)}}, "10.1.2.4", false},
		{"a name, of an address", address, x509.Certificate{DNSNames: []string{"github.com"}}, "github.com", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			key := must.Get(newPrivateKey())(t)
			test.leaf.SerialNumber, test.leaf.NotBefore, test.leaf.NotAfter = big.NewInt(1), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
			der := must.Get(x509.CreateCertificate(rand.Reader, &test.leaf, test.of.parsed, key.Public(), test.of.key))(t)
			leaf := must.Get(x509.ParseCertificate(der))(t)
			roots := x509.NewCertPool()
			roots.AddCert(test.of.parsed)
			_, err := leaf.Verify(x509.VerifyOptions{DNSName: test.host, Roots: roots})
			must.Same(t, test.fits, err == nil, "it is verified", err)
			openssl(t, test.of, der, test.fits)
		})
	}
	if p := name.parsed; !p.MaxPathLenZero || !p.PermittedDNSDomainsCritical || !p.IsCA {
		t.Errorf("the authority is %+v", p)
	}
}

// openssl asks another implementation, which most clients have.
func openssl(t *testing.T, of *Authority, leaf []byte, fits bool) {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not on this machine")
	}
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root.pem"), filepath.Join(dir, "leaf.pem")
	for name, data := range map[string][]byte{root: of.Certificate(), file: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})} {
		must.Do(t, os.WriteFile(name, data, 0o600))
	}
	said, err := exec.CommandContext(t.Context(), program, "verify", "-x509_strict", "-purpose", "any", "-CAfile", root, file).CombinedOutput()
	must.Same(t, fits, err == nil, "openssl says", said, err)
}

func TestSystemBundle(t *testing.T) {
	a := newAuthority(t, "example.org")
	file := filepath.Join(t.TempDir(), "roots.pem")
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	must.Do(t, os.WriteFile(file, slices.Concat([]byte("# roots\n"), key, a.Certificate()), 0o600))
	named := func(value string) func(string) string {
		return func(name string) string {
			must.Same(t, "SSL_CERT_FILE", name, "it asks for")
			return value
		}
	}
	must.Same(t, a.Certificate(), must.Get(SystemBundle(named(file)))(t))
	must.Fail(t, "", must.Err(SystemBundle(named(file+"x"))), "a file that is not there is read")
	if got, err := SystemBundle(named("")); err != nil || len(got) > 0 && !bytes.Contains(got, []byte("BEGIN CERTIFICATE")) {
		t.Errorf("the machine's is %.100q, %v", got, err)
	}
}

func TestJavaStore(t *testing.T) {
	first, second := newAuthority(t, "a.example.org"), newAuthority(t, "b.example.org")
	bundle := append(append([]byte("# roots\n"), first.Certificate()...), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...)
	bundle = append(bundle, second.Certificate()...)
	store := must.Get(JavaStore(bundle))(t)
	must.Same(t, 2, len(must.Get(pkcs12.DecodeTrustStore(store, "changeit"))(t)), "certificates")
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		t.Skip("keytool is not on this machine")
	}
	file := filepath.Join(t.TempDir(), "trust.p12")
	must.Do(t, os.WriteFile(file, store, 0o600))
	said, err := exec.CommandContext(t.Context(), keytool, "-J-Duser.language=en", "-list", "-keystore", file, "-storepass", "changeit").CombinedOutput()
	if err != nil || strings.Count(string(said), "trustedCertEntry") != 2 {
		t.Errorf("keytool says %v:\n%s", err, said)
	}
}
