package proxy

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/authority"
)

// runs starts a program with an environment that has nothing of the machine's.
func (h *held) runs(t testing.TB, dir string, variables []string, program string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(program + " is not on this machine")
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = dir
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "HTTPS_PROXY=http://" + h.address, "https_proxy=http://" + h.address}, variables...)
	said, err := command.CombinedOutput()
	return string(said), err
}

// trusting is a file with the run's authority alone.
func trusting(t *testing.T, a *authority.Authority) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trust.pem")
	if err := os.WriteFile(file, a.Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCurl(t *testing.T) {
	t.Parallel()
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+secret {
			fmt.Fprintf(w, "in: %s\n", r.Header.Get("Authorization"))
		}
	})
	trust := trusting(t, h.proxy.options.Authority)
	for _, version := range []string{"--http1.1", "--http2"} {
		said, err := h.runs(t, t.TempDir(), nil, "curl", "-sS", version, "--cacert", trust, "-H", "Authorization: "+bearer, "--compressed", "https://npm.example.org/team/a")
		if err != nil || said != "in: "+bearer+"\n" {
			t.Errorf("%s gives %q, %v", version, said, err)
		}
		said, err = h.runs(t, t.TempDir(), nil, "curl", "-sS", version, "--cacert", trust, "-w", "%{http_code}", "-H", "Authorization: "+bearer, "https://npm.example.org/others", "--path-as-is")
		if err != nil || !strings.HasSuffix(said, "403") {
			t.Errorf("%s gives %q, %v", version, said, err)
		}
	}
}

const javaClient = `import java.net.*; import java.net.http.*;
public class Client {
	public static void main(String[] args) throws Exception {
		var old = new URL("https://npm.example.org/team/a").openConnection();
		old.setRequestProperty("Authorization", args[0]);
		System.out.print(new String(old.getInputStream().readAllBytes()));
		var request = HttpRequest.newBuilder(URI.create("https://npm.example.org/team/a")).header("Authorization", args[0]).build();
		System.out.print(HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build().send(request, HttpResponse.BodyHandlers.ofString()).body());
	}
}`

const nodeClient = `const [host, port, header] = process.argv.slice(1), http = require("http"), https = require("https");
http.request({host, port, method: "CONNECT", path: "npm.example.org:443"}).on("connect", (_, socket) =>
	https.get({host: "npm.example.org", path: "/team/a", socket, agent: false, headers: {Authorization: header}}, answer => answer.pipe(process.stdout))).end()`

const pythonClient = `import sys, urllib.request
print(urllib.request.urlopen(urllib.request.Request("https://npm.example.org/team/a", headers={"Authorization": sys.argv[1]})).read().decode(), end="")`

// Other implementations of TLS trust the authority as it is, with its constraints.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+secret {
			fmt.Fprintf(w, "in: %s\n", r.Header.Get("Authorization"))
		}
	})
	trust := trusting(t, h.proxy.options.Authority)
	store, err := authority.JavaStore(h.proxy.options.Authority.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"trust.p12": store, "Client.java": []byte(javaClient)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(h.address, ":")
	for _, test := range []struct {
		program string
		args    []string
		answers int
	}{
		{"java", []string{"-Djavax.net.ssl.trustStore=trust.p12", "-Djavax.net.ssl.trustStorePassword=changeit", "-Dhttps.proxyHost=" + host, "-Dhttps.proxyPort=" + port, "Client.java", bearer}, 2},
		{"node", []string{"-e", nodeClient, host, port, bearer}, 1},
		{"python3", []string{"-c", pythonClient, bearer}, 1},
		{"wget", []string{"-qO-", "--header=Authorization: " + bearer, "--ca-certificate=" + trust, "https://npm.example.org/team/a"}, 1},
	} {
		t.Run(test.program, func(t *testing.T) {
			if _, err := exec.LookPath("javac"); test.program == "java" && err != nil {
				t.Skip("javac is not on this machine")
			}
			said, err := h.runs(t, dir, []string{"SSL_CERT_FILE=" + trust, "NODE_EXTRA_CA_CERTS=" + trust}, test.program, test.args...)
			if err != nil || said != strings.Repeat("in: "+bearer+"\n", test.answers) {
				t.Errorf("it says %v:\n%s", err, said)
			}
		})
	}
}

// git fetches with the credential, and pushes neither with it nor without.
func TestGit(t *testing.T) {
	t.Parallel()
	repositories, dir := t.TempDir(), t.TempDir()
	config := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
	programs, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Skip("git is not on this machine")
	}
	server := filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend")
	if _, err := os.Stat(server); err != nil {
		t.Skip("git has no git-http-backend on this machine")
	}
	backend := &cgi.Handler{
		Path: server, Root: "/",
		Env: append([]string{"GIT_PROJECT_ROOT=" + repositories, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x", "HOME=" + dir}, config...),
	}
	const value = "git-secret-value"
	var asked []string
	var h *held
	h = holding(t, false, func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.String())
		h.mu.Unlock()
		if _, password, _ := r.BasicAuth(); password != value {
			w.Header().Set("Www-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
	header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:git0placeholder0"))
	config = append(config, "GIT_SSL_CAINFO="+trusting(t, h.proxy.options.Authority), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.https://git.example.org/.extraHeader", "GIT_CONFIG_VALUE_0="+header)
	git := func(in string, args ...string) string {
		t.Helper()
		said, err := h.runs(t, in, config, "git", args...)
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, said)
		}
		return said
	}
	git(repositories, "init", "--bare", "owner/repository.git")
	seed := filepath.Join(dir, "seed")
	git(dir, "init", "-b", "main", seed)
	if err := os.WriteFile(filepath.Join(seed, "large.txt"), []byte(strings.Repeat("content\n", 100000)), 0o600); err != nil {
		t.Fatal(err)
	}
	git(seed, "add", ".")
	git(seed, "commit", "-m", "first")
	git(seed, "push", filepath.Join(repositories, "owner/repository.git"), "main")
	clone := filepath.Join(dir, "clone")
	git(dir, "clone", "-b", "main", "https://git.example.org/owner/repository.git", clone)
	if text, err := os.ReadFile(filepath.Join(clone, "large.txt")); err != nil || len(text) != 800000 {
		t.Errorf("the clone has %d bytes, %v", len(text), err)
	}
	git(clone, "commit", "--allow-empty", "-m", "second")
	h.mu.Lock()
	before := len(asked)
	h.mu.Unlock()
	if said, err := h.runs(t, clone, config, "git", "push", "origin", "HEAD:refs/heads/pushed"); err == nil || !strings.Contains(said, "403") {
		t.Errorf("a push gives %v:\n%s", err, said)
	}
	h.mu.Lock()
	if len(asked) != before {
		t.Errorf("the server was asked for %q", asked[before:])
	}
	h.mu.Unlock()
	if got := h.refusals(); len(got) == 0 || !strings.Contains(got[0], "policy.secrets: GIT: ") {
		t.Errorf("recorded %q", got)
	}
	if said, err := h.runs(t, dir, config, "git", "clone", "https://git.example.org/owner/another.git"); err == nil {
		t.Errorf("another repository gives\n%s", said)
	}
}
