package authority

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
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
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := NamedBundle(filepath.Join(dir, "bundle"))
	if want := slices.Concat(a.Certificate(), a.Certificate()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the bundle is %q, %v", got, err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key", "empty", "none", "pipe", "."} {
		if got, err := NamedBundle(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is a bundle: %q", name, got)
		}
	}
}
