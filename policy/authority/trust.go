package authority

import (
	"errors"
	"fmt"
	"io/fs"

	"software.sslmate.com/src/go-pkcs12"
)

// systemBundles lists the files with a system's trusted authorities, as crypto/x509 does: Debian, Alpine
// and Arch; Fedora; RHEL; SUSE; Alpine and macOS.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// maxBundle bounds the size of a bundle in bytes. Debian's has 220 KB.
const maxBundle = 16 << 20

// SystemBundle returns the machine's trusted authorities in PEM. They are in the file that
// SSL_CERT_FILE names, or else in the first existing file of bundles. It returns nil if there is no
// such file. variable looks up an environment variable.
func SystemBundle(variable func(name string) string) ([]byte, error) {
	if named := variable("SSL_CERT_FILE"); named != "" {
		return ReadBundle(named)
	}
	for _, place := range systemBundles {
		bundle, err := ReadBundle(place)
		// Return success, and any error except a missing file or one without certificates.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoBundle) {
			return bundle, err
		}
	}
	return nil, nil
}

// JavaStore returns a PKCS #12 trust store with the certificates of a PEM bundle. Java runtimes
// open it with the password "changeit". It omits invalid certificates, since some systems have such.
func JavaStore(bundle []byte) ([]byte, error) {
	var entries []pkcs12.TrustStoreEntry
	for i, certificate := range certificatesIn(bundle) {
		// Names are unique, because Java keeps only the last entry with a name.
		name := fmt.Sprintf("%d %s", i+1, certificate.Subject)
		entries = append(entries, pkcs12.TrustStoreEntry{Cert: certificate, FriendlyName: name})
	}
	// Early updates of Java 8 and 11 support only the old, weak algorithms. That is harmless, because
	// the store contains no secret.
	store, err := pkcs12.LegacyDES.EncodeTrustStoreEntries(entries, pkcs12.DefaultPassword)
	if err != nil {
		return nil, fmt.Errorf("make a trust store for Java: %w", err)
	}
	return store, nil
}
