package authority

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errNoBundle reports a file without a certificate.
var errNoBundle = errors.New("it has no certificate in PEM")

// ReadBundle returns the certificates of a PEM file, without its keys and comments. It returns errNoBundle
// for a file without certificates, and other errors for one that is not regular or is too large.
func ReadBundle(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for the writer of a pipe
	if err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("read the bundle %s: %w", name, err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err == nil && len(raw) > maxBundle {
		err = fmt.Errorf("it has more than %d bytes", maxBundle)
	}
	if err != nil {
		return nil, fmt.Errorf("read the bundle %s: %w", name, err)
	}
	var found []byte
	for _, certificate := range certificatesIn(raw) {
		found = append(found, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
	}
	if found == nil {
		return nil, fmt.Errorf("read the bundle %s: %w", name, errNoBundle)
	}
	return found, nil
}

// certificatesIn returns the valid certificates of a PEM text.
func certificatesIn(raw []byte) (found []*x509.Certificate) {
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && block.Type == "CERTIFICATE" {
			found = append(found, certificate)
		}
	}
	return found
}
