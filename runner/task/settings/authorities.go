package settings

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Authorities maps each CA file named by the job to its certificates in PEM. The ca keys of network
// lists and secrets name these files.
type Authorities map[string][]byte

// ReadAuthorities reads the CA files named by the job. Like policy.rules, files inside the checkout
// are read from the base commit.
func ReadAuthorities(ctx context.Context, base Commit, j *job.Job) (Authorities, error) {
	all := make(Authorities)
	for key, host := range j.AllowedHosts() {
		if name := host.CA; name != "" && all[name] == nil {
			read, err := base.readAuthority(ctx, name)
			if err != nil {
				return nil, outcome.Stopf(outcome.InvalidInput, "authority", "The authority %s of %s (%s) cannot be used: %v; correct the path, or give a file with certificates in PEM.",
					name, host.Host, key, outcome.WithoutPath(err)).Because(err)
			}
			all[name] = read
		}
	}
	return all, nil
}

// readAuthority returns the certificates in the CA file called name, in PEM.
func (c Commit) readAuthority(ctx context.Context, name string) ([]byte, error) {
	if c.Checkout == nil && !filepath.IsAbs(name) {
		return nil, errors.New("it lies in a repository, and there is none here")
	}
	raw, err := c.readConfigured(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxFileBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxFileBytes)
	}
	return parseCertificates(raw)
}

// parseCertificates returns the certificates of a PEM file without the text around them. It rejects any
// other PEM block, because commands can read the result.
func parseCertificates(raw []byte) (all []byte, err error) {
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a %s, and may hold certificates alone", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("it holds a certificate that cannot be read")
		}
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	if all == nil {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return all, nil
}

// CertificatesFor returns the certificates of the entries in PEM, each file once. It is empty for entries
// without a CA.
func (a Authorities) CertificatesFor(entries []job.AllowedHost) (all []byte) {
	var known []string
	for _, host := range entries {
		if host.CA != "" && !slices.Contains(known, host.CA) {
			known = append(known, host.CA)
			all = append(all, a[host.CA]...)
		}
	}
	return all
}

// RootsFor returns a function that returns the certificate authorities to trust for a target: the machine's
// and those of the entries that allow the target. It returns nil if these are the machine's alone.
func (a Authorities) RootsFor(entries []job.AllowedHost) func(reach.Target) *x509.CertPool {
	return func(t reach.Target) (pool *x509.CertPool) {
		for _, host := range entries {
			if entry, file, ok := host.EntryWithCA(); ok && entry.Allows(t) {
				if pool == nil {
					pool = machineCertificates()
				}
				pool.AppendCertsFromPEM(a[file])
			}
		}
		return pool
	}
}

// machineCertificates returns the machine's certificate authorities; an empty pool if it has none.
func machineCertificates() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return x509.NewCertPool() // a machine without any
	}
	return pool
}
