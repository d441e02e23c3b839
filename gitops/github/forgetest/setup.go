package forgetest

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/nacl/box"
)

// setup is the configuration of a repository that agent-ci init changes.
type setup struct {
	public, private *[32]byte // key pair that encrypts secrets; nil until a call asks for the public key
	secrets         map[string]string
	labels          []string
	mayOpenPulls    bool   // workflows may open and approve pull requests
	permissions     string // default permissions of workflows: read or write; "" means read
}

const setupKeyID = "568250167242549743"

// Secret returns the decrypted value of an Actions secret.
func (r *Repository) Secret(name string) (value string, there bool) {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	value, there = r.setup.secrets[name]
	return value, there
}

// Labels returns the labels that calls have created.
func (r *Repository) Labels() []string {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	return slices.Clone(r.setup.labels)
}

// WorkflowsMayOpenPullRequests reports whether the repository allows workflows to open pull
// requests. The initial value is false.
func (r *Repository) WorkflowsMayOpenPullRequests() bool {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	return r.setup.mayOpenPulls
}

func getSecretsKey(_ *Forge, c *call) answer {
	s := &c.repository.setup
	if s.public == nil {
		s.public, s.private, _ = box.GenerateKey(rand.Reader)
	}
	return ok(object{"key_id": setupKeyID, "key": base64.StdEncoding.EncodeToString(s.public[:])})
}

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// putSecret decrypts a secret and stores its value.
func putSecret(_ *Forge, c *call, sent struct {
	Value string `json:"encrypted_value"`
	KeyID string `json:"key_id"`
},
) answer {
	s, name := &c.repository.setup, c.PathValue("name")
	sealed, err := base64.StdEncoding.DecodeString(sent.Value)
	if err != nil || s.public == nil || sent.KeyID != setupKeyID || !secretName.MatchString(name) || strings.HasPrefix(strings.ToUpper(name), "GITHUB_") {
		return unprocessable("Bad request - the secret or its name is not valid")
	}
	value, opened := box.OpenAnonymous(nil, sealed, s.public, s.private)
	if !opened {
		return unprocessable("Bad request - the secret is not sealed for this key")
	}
	_, there := s.secrets[name]
	if s.secrets == nil {
		s.secrets = map[string]string{}
	}
	s.secrets[name] = string(value)
	if there {
		return answer{status: http.StatusNoContent}
	}
	return created(object{})
}

// getSecret answers with the name of a secret, without its value.
func getSecret(f *Forge, c *call) answer {
	name := c.PathValue("name")
	if _, there := c.repository.setup.secrets[name]; !there {
		return notFound()
	}
	return ok(object{"name": name, "created_at": f.now(), "updated_at": f.now()})
}

func getWorkflowPermissions(_ *Forge, c *call) answer {
	s := c.repository.setup
	if s.permissions == "" {
		s.permissions = "read"
	}
	return ok(object{"default_workflow_permissions": s.permissions, "can_approve_pull_request_reviews": s.mayOpenPulls})
}

func setWorkflowPermissions(_ *Forge, c *call, sent struct {
	Permissions *string `json:"default_workflow_permissions"`
	MayOpen     *bool   `json:"can_approve_pull_request_reviews"`
},
) answer {
	s := &c.repository.setup
	if sent.Permissions != nil {
		s.permissions = *sent.Permissions
	}
	if sent.MayOpen != nil {
		s.mayOpenPulls = *sent.MayOpen
	}
	return answer{status: http.StatusNoContent}
}

// createLabel creates a label. It refuses an existing one.
func createLabel(f *Forge, c *call, sent struct{ Name, Color, Description string }) answer {
	r := c.repository
	same := func(label string) bool { return strings.EqualFold(label, sent.Name) }
	switch {
	case sent.Name == "":
		return invalid(reason{Resource: "Label", Field: "name", Code: "missing_field"})
	case slices.ContainsFunc(r.setup.labels, same):
		return invalid(reason{Resource: "Label", Field: "name", Code: "already_exists"})
	}
	r.setup.labels = append(r.setup.labels, sent.Name)
	return created(f.showLabels([]string{sent.Name})[0])
}

// getTree answers with the entries of a tree, without subfolders' entries.
func getTree(f *Forge, c *call) answer {
	id := c.PathValue("sha")
	if !objectName.MatchString(id) {
		return notFound()
	}
	listing, err := c.repository.runGit("ls-tree", "-z", "-l", "--full-tree", id)
	if err != nil {
		return notFound()
	}
	return ok(f.showTree(id, listing))
}

// getBlob answers with the content of a blob in base64.
func getBlob(f *Forge, c *call) answer {
	id := c.PathValue("sha")
	if !objectName.MatchString(id) {
		return notFound()
	}
	content, err := c.repository.runGit("cat-file", "blob", id)
	if err != nil {
		return notFound()
	}
	return ok(object{
		"sha": id, "size": len(content), "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(content)),
	})
}

func deleteRef(_ *Forge, c *call) answer {
	branch, isBranch := strings.CutPrefix(c.PathValue("ref"), "heads/")
	if _, there := c.repository.branch(branch); !isBranch || !there {
		return unprocessable("Reference does not exist")
	}
	c.repository.mustGit(nil, "", "update-ref", "-d", "refs/heads/"+branch)
	return answer{status: http.StatusNoContent}
}
