package proxy

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/must"
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
	must.Do(t, os.WriteFile(file, a.Certificate(), 0o600))
	return file
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
func TestOtherClientsTrustAuthority(t *testing.T) {
	t.Parallel()
	h := holding(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+secret {
			fmt.Fprintf(w, "in: %s\n", r.Header.Get("Authorization"))
		}
	})
	trust := trusting(t, h.proxy.options.Authority)
	store := must.Get(authority.JavaStore(h.proxy.options.Authority.Certificate()))(t)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"trust.p12": store, "Client.java": []byte(javaClient)} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	host, port, _ := strings.Cut(h.address, ":")
	for _, test := range []struct {
		program string
		args    []string
		answers int
	}{
		{"java", []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djavax.net.ssl.trustStore=trust.p12", "-Djavax.net.ssl.trustStorePassword=changeit", "-Dhttps.proxyHost=" + host, "-Dhttps.proxyPort=" + port, "Client.java", bearer}, 2},
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
