package sshsig_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/policy/must"
)

// newKey makes a key with ssh-keygen and gives its path.
func newKey(t *testing.T, passphrase string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen")
	}
	path := filepath.Join(t.TempDir(), "key")
	out, err := exec.Command("ssh-keygen", append([]string{"-q", "-N", passphrase, "-C", "test", "-f", path}, args...)...).CombinedOutput()
	must.Do(t, err, "ssh-keygen", out)
	return path
}

func TestSignAsSSHKeygenVerifies(t *testing.T) {
	for _, kind := range [][]string{{"-t", "ed25519"}, {"-t", "ecdsa", "-b", "256"}, {"-t", "rsa", "-b", "2048"}, {"-t", "rsa", "-b", "2048", "-m", "PEM"}} {
		t.Run(strings.Join(kind, " "), func(t *testing.T) {
			path := newKey(t, "", kind...)
			pem := must.Get(os.ReadFile(path))(t)
			public := must.Get(os.ReadFile(path + ".pub"))(t)
			key := must.Get(sshsig.ParseKey(pem))(t)
			signature := must.Get(key.Sign(sshsig.Git, []byte("a message\n")))(t)
			dir := t.TempDir()
			for name, content := range map[string]string{"sig": signature, "allowed": "me@example.invalid " + string(public)} {
				must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
			}
			verify := func(namespace, message string) error {
				cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", filepath.Join(dir, "allowed"), "-I", "me@example.invalid", "-n", namespace, "-s", filepath.Join(dir, "sig"))
				cmd.Stdin = strings.NewReader(message)
				return cmd.Run()
			}
			must.Do(t, verify("git", "a message\n"), "ssh-keygen does not take the signature", signature)
			if verify("git", "another message\n") == nil || verify("file", "a message\n") == nil {
				t.Error("ssh-keygen takes it for another message or namespace")
			}
		})
	}
}

func TestRefusesInvalidKeys(t *testing.T) {
	locked := must.Get(os.ReadFile(newKey(t, "secret words", "-t", "ed25519")))(t)
	for name, c := range map[string]struct{ pem, words string }{
		"passphrase": {string(locked), "passphrase"},
		"text":       {"hunter2hunter2", "no private key"},
		"nothing":    {"", "no private key"},
	} {
		_, err := sshsig.ParseKey([]byte(c.pem))
		if err == nil || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
