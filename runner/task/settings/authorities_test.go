package settings_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// authority is the certificate of one, in PEM.
func authority(t *testing.T, name string) (string, *x509.Certificate) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	made := must.Get(x509.ParseCertificate(raw))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), made
}

// trusting is a job whose commands reach a host that a file vouches for.
func trusting(file string) *job.Job {
	var j job.Job
	j.Policy.Network.Allow = []job.AllowedHost{{Host: "a.corp.example", CA: file}, {Host: "b.corp.example"}}
	return &j
}

func TestReadsAuthoritiesFromBaseOrOperator(t *testing.T) {
	operator := t.TempDir()
	committedOne, _ := authority(t, "committed")
	changedOne, _ := authority(t, "changed")
	base := committed(t, files{"certs/corp.pem": "Our own:\n" + committedOne, "certs/two.pem": committedOne + "and\n" + committedOne})
	files{"certs/corp.pem": changedOne, "certs/new.pem": changedOne}.put(t, base.Root())
	files{"op.pem": changedOne, "checkout": "-> " + base.Root(), "link.pem": "-> " + filepath.Join(base.Root(), "certs/corp.pem"), "new.pem": "-> " + filepath.Join(base.Root(), "certs/new.pem")}.put(t, operator)
	files{"ours": "-> " + operator}.put(t, base.Root())
	for name, c := range map[string]struct{ file, want, says string }{
		"below the root":      {"certs/corp.pem", committedOne, ""},
		"two of them":         {"certs/two.pem", committedOne + committedOne, ""},
		"by its whole path":   {filepath.Join(base.Root(), "certs/corp.pem"), committedOne, ""},
		"through a link":      {filepath.Join(operator, "checkout/certs/corp.pem"), committedOne, ""},
		"the operator's":      {filepath.Join(operator, "op.pem"), changedOne, ""},
		"by a link to it":     {filepath.Join(operator, "link.pem"), committedOne, ""},
		"a link to a new one": {filepath.Join(operator, "new.pem"), "", "new.pem"},
		"by a new link":       {filepath.Join(base.Root(), "ours/op.pem"), "", "op.pem"},
		"not committed":       {"certs/new.pem", "", "The authority certs/new.pem of a.corp.example (policy.network.allow[0]) cannot be used: "},
		"not there":           {filepath.Join(operator, "none.pem"), "", "none.pem"},
		"a folder":            {operator, "", "cannot be used: "},
		"out of the checkout": {"../op.pem", "", "../op.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := settings.ReadAuthorities(t.Context(), base, trusting(c.file))
			if c.says != "" {
				outcometest.Want(t, err, "invalid_input/authority", c.says)
				return
			}
			if err != nil || string(got[c.file]) != c.want {
				t.Errorf("%v, read %s", err, got[c.file])
			}
		})
	}
}

func TestRefusesInvalidAuthorities(t *testing.T) {
	good, _ := authority(t, "good")
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("a key")}))
	for content, says := range map[string]string{
		"":         "it holds no certificate in PEM",
		"\x30\x82": "it holds no certificate in PEM",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "it holds a certificate that cannot be read",
		good + key: "it holds a PRIVATE KEY, and may hold certificates alone",
		good + strings.Repeat("#\n", settings.MaxFileBytes/2): "it is longer than",
	} {
		folder := t.TempDir()
		files{"a.pem": content}.put(t, folder)
		_, err := settings.ReadAuthorities(t.Context(), settings.Commit{}, trusting(filepath.Join(folder, "a.pem")))
		outcometest.Want(t, err, "invalid_input/authority", says)
	}
	_, err := settings.ReadAuthorities(t.Context(), settings.Commit{}, trusting("certs/corp.pem"))
	outcometest.Want(t, err, "invalid_input/authority", "it lies in a repository, and there is none here")
}

func TestAuthoritiesCoverOnlyTheirHosts(t *testing.T) {
	one, oneCertificate := authority(t, "one")
	two, twoCertificate := authority(t, "two")
	folder := t.TempDir()
	files{"one.pem": one, "two.pem": two, "three.pem": two}.put(t, folder)
	var j job.Job
	j.Policy.Network.Allow = []job.AllowedHost{
		{Host: "*.corp.example", CA: filepath.Join(folder, "one.pem")},
		{Host: "10.0.0.5:8443", Private: true, CA: filepath.Join(folder, "two.pem")},
		{Host: "both.corp.example", CA: filepath.Join(folder, "two.pem")},
		{Preset: "npm"},
		{Host: "open.example"},
	}
	j.Setup = []job.SetupStep{{}, {Network: job.Network{Allow: []job.AllowedHost{{Host: "x.example", CA: filepath.Join(folder, "two.pem")}}}}}
	j.Policy.Secrets = []job.Secret{{Name: "X", Hosts: []string{"secret.example/team", "10.0.0.6:8443"}, Private: true, CA: filepath.Join(folder, "three.pem")}}
	all := must.Get(settings.ReadAuthorities(t.Context(), settings.Commit{}, &j))(t)
	must.Same(t, []byte(one+two), all.CertificatesFor(j.Policy.Network.Allow), "those of the list")
	must.Same(t, two, string(all.CertificatesFor(j.Setup[1].Network.Allow)), "those of the setup command")
	must.None(t, all.CertificatesFor(nil), "those of no list")
	must.Same(t, two, string(all.CertificatesFor(j.Policy.Secrets[0].AllowedHosts())), "those of the secret")
	roots := all.RootsFor(j.Policy.Network.Allow)
	for authority, want := range map[string][2]bool{ // whether one vouches, and two
		"a.corp.example:443": {true, false}, "10.0.0.5:8443": {false, true}, "both.corp.example:443": {true, true},
		"10.0.0.5:443": {}, "corp.example:443": {}, "registry.npmjs.org:443": {}, "open.example:443": {}, "x.example:443": {},
	} {
		target := must.Get(reach.ParseTarget(reach.HTTPS, authority))(t)
		pool := roots(target)
		if (pool == nil) != (want == [2]bool{}) {
			t.Errorf("%s has roots of its own: %t", authority, pool != nil)
			continue
		}
		for i, certificate := range []*x509.Certificate{oneCertificate, twoCertificate} {
			if pool == nil {
				continue
			}
			_, err := certificate.Verify(x509.VerifyOptions{Roots: pool})
			must.Same(t, want[i], err == nil, authority, certificate.Subject.CommonName, err)
		}
	}
}
