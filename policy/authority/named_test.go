package authority

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestNamedBundleHasOnlyCertificates(t *testing.T) {
	a := newAuthority(t, "example.org")
	dir := t.TempDir()
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	for name, content := range map[string][]byte{
		"bundle": slices.Concat([]byte("# comment\n"), key, a.Certificate(), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), a.Certificate()),
		"key":    key,
		"empty":  nil,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	got, err := ReadBundle(filepath.Join(dir, "bundle"))
	if want := slices.Concat(a.Certificate(), a.Certificate()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the bundle is %q, %v", got, err)
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, name := range []string{"key", "empty", "none", "pipe", "."} {
		must.Fail(t, "", must.Err(ReadBundle(filepath.Join(dir, name))), name, "is a bundle")
	}
}
