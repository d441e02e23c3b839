package authority

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"

	"software.sslmate.com/src/go-pkcs12"
)

// bundles are where systems keep the authorities that they trust: Debian, Alpine and
// Arch; Fedora; RHEL; SUSE; Alpine and macOS. They are those of package crypto/x509.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// longestBundle bounds what is read; Debian's has 220 KB.
const longestBundle = 16 << 20

// SystemBundle are the authorities that the machine trusts, in PEM and without anything
// else: those of the file that variable says SSL_CERT_FILE names, or of the usual places.
// It is empty where none is found.
func SystemBundle(variable func(name string) string) ([]byte, error) {
	if named := variable("SSL_CERT_FILE"); named != "" {
		return NamedBundle(named)
	}
	for _, place := range bundles {
		bundle, err := NamedBundle(place)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoBundle) {
			return bundle, err
		}
	}
	return nil, nil
}

// JavaStore is a trust store with the certificates of a bundle in PEM, in the format
// PKCS #12, which a Java runtime reads with the password "changeit". What of the bundle
// is no certificate that can be read is left out: systems have such.
func JavaStore(bundle []byte) ([]byte, error) {
	var entries []pkcs12.TrustStoreEntry
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue
		}
		// Of two entries with one name Java keeps the last.
		name := fmt.Sprintf("%d %s", len(entries)+1, certificate.Subject)
		entries = append(entries, pkcs12.TrustStoreEntry{Cert: certificate, FriendlyName: name})
	}
	// The algorithms are the old ones, since early updates of Java 8 and 11 know no
	// others. Nothing in the store is secret, and who can write it needs no password.
	store, err := pkcs12.LegacyDES.EncodeTrustStoreEntries(entries, pkcs12.DefaultPassword)
	if err != nil {
		return nil, fmt.Errorf("make a trust store for Java: %w", err)
	}
	return store, nil
}
