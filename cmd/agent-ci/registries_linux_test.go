package main_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// The registries give a package to who has the token, as their protocols have it; what
// stands at a path comes from files alone.

// files answers with what it has at a path.
type files map[string][]byte

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, has := f[r.URL.EscapedPath()]
	if !has {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Content-Type", "text/html")
	}
	_, _ = w.Write(content) // the client may be gone
}

// guarded lets those in whose header Authorization is the one that it wants.
func guarded(authorization string, inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != authorization {
			w.Header().Set("WWW-Authenticate", `Basic realm="packages"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inside.ServeHTTP(w, r)
	})
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// npmRegistry has @team/words 1.0.0 below /npm.
func npmRegistry(t *testing.T) http.Handler {
	return guarded("Bearer "+registryToken, npmPackage(t, "@team/words", "https://npm.example.test/npm"))
}

// publicRegistry has public-words 1.0.0, for everybody.
func publicRegistry(t *testing.T) http.Handler {
	return npmPackage(t, "public-words", "https://registry.npmjs.org")
}

// npmPackage is a package of one version below an address.
func npmPackage(t *testing.T, name, address string) files {
	packed := tarball(t, map[string]string{
		"package/package.json": fmt.Sprintf(`{"name": %q, "version": "1.0.0", "main": "index.js"}`, name),
		"package/index.js":     `module.exports = "private words"`,
	})
	one, long := sha1.Sum(packed), sha512.Sum512(packed)
	document := fmt.Sprintf(`{"name": %[1]q, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": %[1]q, "version": "1.0.0",
		"dist": {"tarball": "%[2]s/%[1]s/-/words-1.0.0.tgz", "shasum": %[3]q, "integrity": %[4]q}}}}`,
		name, address, hex.EncodeToString(one[:]), "sha512-"+base64.StdEncoding.EncodeToString(long[:]))
	_, path, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	below := strings.TrimSuffix("/"+path, "/") + "/"
	return files{below + strings.ReplaceAll(name, "/", "%2f"): []byte(document), below + name + "/-/words-1.0.0.tgz": packed}
}

// pypiIndex has words 1.0 below /simple (PEP 503).
func pypiIndex(t *testing.T) http.Handler {
	wheel := zippedFiles(t, []file{
		{"words.py", `text = "private words"`},
		{"words-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: words\nVersion: 1.0\n"},
		{"words-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"words-1.0.dist-info/RECORD", "words.py,,\nwords-1.0.dist-info/METADATA,,\nwords-1.0.dist-info/WHEEL,,\nwords-1.0.dist-info/RECORD,,\n"},
	})
	return guarded(basic("__token__", registryToken), files{
		"/simple/words/":                     []byte(`<!DOCTYPE html><a href="/simple/words-1.0-py3-none-any.whl">words-1.0-py3-none-any.whl</a>`),
		"/simple/words-1.0-py3-none-any.whl": wheel,
	})
}

// goProxy has the module private.example.test/words v1.0.0 below /modules.
func goProxy(t *testing.T) http.Handler {
	const module, at = "private.example.test/words", "/modules/private.example.test/words/@v/"
	packed := zippedFiles(t, []file{
		{module + "@v1.0.0/go.mod", "module " + module + "\n"},
		{module + "@v1.0.0/words.go", "package words\n\nconst Text = \"private words\"\n"},
	})
	return guarded(basic("agent-ci", registryToken), files{
		at + "list": []byte("v1.0.0\n"), at + "v1.0.0.info": []byte(`{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}`),
		at + "v1.0.0.mod": []byte("module " + module + "\n"), at + "v1.0.0.zip": packed,
	})
}

// cargoRegistry is a sparse one, with words 1.0.0.
func cargoRegistry(t *testing.T) http.Handler {
	packed := tarball(t, map[string]string{
		"words-1.0.0/Cargo.toml": "[package]\nname = \"words\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
		"words-1.0.0/src/lib.rs": "pub const TEXT: &str = \"private words\";\n",
	})
	sum := sha256.Sum256(packed)
	return guarded(registryToken, files{
		"/index/config.json":  []byte(`{"dl": "https://cargo.example.test/crates/{crate}/{version}", "auth-required": true}`),
		"/index/wo/rd/words":  fmt.Appendf(nil, `{"name": "words", "vers": "1.0.0", "deps": [], "cksum": %q, "features": {}, "yanked": false}`+"\n", hex.EncodeToString(sum[:])),
		"/crates/words/1.0.0": packed,
	})
}

// mavenRepository has the parent of a project below /maven.
func mavenRepository(*testing.T) http.Handler {
	pom := []byte(`<project><modelVersion>4.0.0</modelVersion><groupId>test.example</groupId><artifactId>parent</artifactId><version>1.0</version><packaging>pom</packaging></project>`)
	sum, at := sha1.Sum(pom), "/maven/test/example/parent/1.0/parent-1.0.pom"
	return guarded(basic("agent-ci", registryToken), files{at: pom, at + ".sha1": []byte(hex.EncodeToString(sum[:]))})
}

// gitServer serves the repositories of a folder, to fetch and to push.
func gitServer(t *testing.T, folder string) http.Handler {
	program := must.Get(exec.Command("git", "--exec-path").Output())(t)
	return guarded(basic("x-access-token", registryToken), &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(program)), "git-http-backend"), Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	})
}

// mirror tells who asks what it was asked, with what was asked in place of a secret.
func mirror(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Told", r.Header.Get("Authorization"))
	fmt.Fprintf(w, "%s %s by %s\n", r.Method, r.URL, r.Proto)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "%s: %s\n", name, r.Header[name])
	}
}

func tarball(t *testing.T, content map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	w := tar.NewWriter(zip)
	for name, text := range content {
		must.Do(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		must.Do(t, must.Err(w.Write([]byte(text))))
	}
	must.Do(t, w.Close())
	must.Do(t, zip.Close())
	return packed.Bytes()
}

type file struct{ name, text string }

func zippedFiles(t *testing.T, content []file) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, f := range content {
		to := must.Get(w.Create(f.name))(t)
		must.Do(t, must.Err(to.Write([]byte(f.text))))
	}
	must.Do(t, w.Close())
	return packed.Bytes()
}
