package forgetest_test

import (
	"crypto/rand"
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/nacl/box"
)

// TestSetupIsDescribed sets up a repository: each answer is compared with GitHub's
// description.
func TestSetupIsDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.ask(t, "GET", widgets+"/actions/secrets/public-key", "")
	raw, err := base64.StdEncoding.DecodeString(key.field(t, "key").(string))
	if err != nil || len(raw) != 32 {
		t.Fatalf("the key is %q, %v", raw, err)
	}
	sealed := func(value string) string {
		text, err := box.SealAnonymous(nil, []byte(value), (*[32]byte)(raw), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return `{"key_id": "` + key.field(t, "key_id").(string) + `", "encrypted_value": "` + base64.StdEncoding.EncodeToString(text) + `"}`
	}
	tree := w.git(t, "rev-parse", "main^{tree}")
	for _, c := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"no secret", "GET", "/actions/secrets/KEY", "", 404},
		{"a secret", "PUT", "/actions/secrets/KEY", sealed("one"), 201},
		{"the secret again", "PUT", "/actions/secrets/KEY", sealed("two"), 204},
		{"what is known of the secret", "GET", "/actions/secrets/KEY", "", 200},
		{"a secret of a name that is kept", "PUT", "/actions/secrets/GITHUB_KEY", sealed("one"), 422},
		{"a secret in the clear", "PUT", "/actions/secrets/OTHER", `{"key_id": "568250167242549743", "encrypted_value": "b25l"}`, 422},
		{"permissions", "GET", "/actions/permissions/workflow", "", 200},
		{"set permissions", "PUT", "/actions/permissions/workflow", `{"can_approve_pull_request_reviews": true}`, 204},
		{"label", "POST", "/labels", `{"name": "agent-ci", "color": "5319e7", "description": "D"}`, 201},
		{"label again", "POST", "/labels", `{"name": "Agent-CI"}`, 422},
		{"label without a name", "POST", "/labels", `{"color": "5319e7"}`, 422},
		{"tree", "GET", "/git/trees/" + tree, "", 200},
		{"file", "GET", "/git/blobs/" + w.git(t, "rev-parse", "main:main.txt"), "", 200},
		{"no file", "GET", "/git/blobs/" + tree, "", 404},
		{"no tree", "GET", "/git/trees/HEAD", "", 404},
		{"remove a branch", "DELETE", "/git/refs/heads/feature/topic", "", 204},
		{"remove no branch", "DELETE", "/git/refs/heads/feature/topic", "", 422},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.send(t, "Bearer "+w.Token, c.method, w.APIURL+widgets+c.path, c.body)
			if got.status != c.status {
				t.Errorf("status %d, want %d: %s", got.status, c.status, got.body)
			}
			if described := got.status < 400 && got.status != 204; described { // a 204 has no body, and those errors none that is described
				if err := w.description.check(c.method, widgets+c.path, got.status, got.body); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if value, there := w.repo.Secret("KEY"); value != "two" || !there {
		t.Errorf("the secret is %q, %v", value, there)
	}
	if diff := cmp.Diff([]string{"agent-ci"}, w.repo.Labels()); diff != "" || !w.repo.WorkflowsMayOpenPullRequests() {
		t.Errorf("labels %s, pull requests %v", diff, w.repo.WorkflowsMayOpenPullRequests())
	}
}
