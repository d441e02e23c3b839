package main_test

import (
	"bytes"
	"cmp"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// registryToken is what opens the registries.
const registryToken = "tok-Zm9v/YmFy+4711-private=="

// client is a program that fetches something private, by a run's setup.
type client struct {
	program string
	needs   string // what makes the program fit, a command; empty for any
	secret  string // entry of policy.secrets, but for its variable
	allow   string // entries of policy.network.allow; empty for no list
	setup   string
	files   map[string]string // of the checkout
}

var clients = map[string]client{
	"npm": {
		program: "npm",
		secret:  "{name: NPM_TOKEN, preset: npm, hosts: [npm.example.test/npm]}",
		setup:   `npm install --no-audit --no-fund --no-update-notifier @team/words && node -e 'console.log(require("@team/words"))' > out`,
		files:   map[string]string{".npmrc": "@team:registry=https://npm.example.test/npm/\n", "package.json": `{"name": "x", "version": "1.0.0", "private": true}`},
	},
	"npm by a preset of hosts": {
		program: "npm",
		secret:  "{name: UNUSED_TOKEN, hosts: [api.example.test]}",
		allow:   "{preset: npm}, {host: registry.npmjs.org, ca: CA}",
		setup:   `npm install --no-audit --no-fund --no-update-notifier public-words && node -e 'console.log(require("public-words"))' > out`,
		files:   map[string]string{"package.json": `{"name": "x", "version": "1.0.0", "private": true}`},
	},
	"pip": {
		program: "python3", needs: "PATH=/usr/bin:$PATH python3 -m pip --version",
		secret: "{name: PYPI_TOKEN, preset: pypi, hosts: [pypi.example.test/simple]}",
		setup:  `PATH="/usr/bin:$PATH" && python3 -m pip --disable-pip-version-check --no-cache-dir install --index-url https://pypi.example.test/simple --target packages words && PYTHONPATH=packages python3 -c 'import words; print(words.text)' > out`,
	},
	"go": {
		program: "go",
		secret:  "{name: GOPROXY_TOKEN, preset: goproxy, hosts: [go.example.test/modules]}",
		setup:   `go get private.example.test/words@v1.0.0 && go run . > out`,
		files: map[string]string{
			"go.mod": "module example.test/x\n\ngo 1.21\n", "main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"private.example.test/words\"\n)\n\nfunc main() { fmt.Println(words.Text) }\n",
		},
	},
	"git": {
		program: "git",
		secret:  "{name: GIT_TOKEN, preset: git, hosts: [git.example.test/team/words]}",
		setup:   `git clone --quiet https://git.example.test/team/words.git words && cp words/file out`,
	},
	"git push": {
		program: "git",
		secret:  "{name: GIT_TOKEN, preset: git, hosts: [git.example.test/team/words]}",
		setup: `git clone --quiet https://git.example.test/team/words.git words && cp words/file out && cd words && git -c user.name=x -c user.email=x@example.invalid commit --quiet --allow-empty -m pushed
for to in https://git.example.test/team/words.git "https://x-access-token:$GIT_TOKEN@git.example.test/team/words.git" https://git.example.test/team/words/; do if git push --quiet "$to" HEAD:main HEAD:more 2> said; then exit 1; fi; grep -q 403 said || exit 1; done`,
	},
	"curl": {
		program: "curl",
		secret:  "{name: API_TOKEN, hosts: [api.example.test]}",
		setup: `for how in --http1.1 --http2; do curl -sSf -D - $how -H "Authorization: Bearer $API_TOKEN" https://api.example.test/a > seen && grep -qi "^X-Told: Bearer $API_TOKEN" seen && grep -q "^Authorization: .Bearer $API_TOKEN.$" seen || exit 1; done
grep -q "by HTTP/2.0" seen && echo private words > out`,
	},
	"cargo": {
		program: "cargo", needs: `case "$(cargo --version)" in "cargo 0."*|"cargo 1."[0-9].*|"cargo 1."[0-6]*|"cargo 1.7"[0-3]*) exit 1;; esac`, // asks for private indexes since 1.74
		secret: "{name: CARGO_REGISTRIES_TEAM_TOKEN, preset: cargo, hosts: [cargo.example.test]}",
		setup:  `cargo fetch && find "$CARGO_HOME" -name lib.rs -path '*words*' | xargs grep -o 'private words' > out`,
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"x\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\nwords = { version = \"1\", registry = \"team\" }\n", "src/lib.rs": "",
			".cargo/config.toml": "[registries.team]\nindex = \"sparse+https://cargo.example.test/index/\"\n",
		},
	},
	"maven": {
		program: "mvn",
		secret:  "{name: MAVEN_TOKEN, preset: maven, server: team, hosts: [maven.example.test/maven]}",
		setup:   `MAVEN_OPTS="-Duser.home=$HOME" mvn --batch-mode --quiet validate && echo private words > out`,
		files: map[string]string{"pom.xml": `<project><modelVersion>4.0.0</modelVersion>
<parent><groupId>test.example</groupId><artifactId>parent</artifactId><version>1.0</version><relativePath/></parent>
<artifactId>x</artifactId><packaging>pom</packaging>
<repositories><repository><id>team</id><url>https://maven.example.test/maven</url></repository></repositories></project>`},
	},
}

// TestPackageManagersUseSecretsSafely has the setup of a run fetch what is private by each client, with a secret
// that no command sees. Those that AGENT_CI_CLIENTS lists may not be missing.
func TestPackageManagersUseSecretsSafely(t *testing.T) {
	t.Parallel()
	if !everything() {
		t.Skip("clients are run in make e2e only (AGENT_CI_E2E=1)")
	}
	if confines() != sandbox.LevelFull {
		t.Skip("needs confinement with all layers")
	}
	repositories := t.TempDir()
	internet := proxytest.Start(t, map[string]http.Handler{
		"registry.npmjs.org:443": publicRegistry(t), "npm.example.test:443": npmRegistry(t), "pypi.example.test:443": pypiIndex(t), "go.example.test:443": goProxy(t),
		"git.example.test:443": gitServer(t, repositories), "api.example.test:443": guarded("Bearer "+registryToken, http.HandlerFunc(mirror)),
		"cargo.example.test:443": cargoRegistry(t), "maven.example.test:443": mavenRepository(t),
	})
	makeTeamRepository(t, repositories)
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, name)
			out := c.run(t, internet)
			must.Same(t, "private words", strings.TrimSpace(string(must.Get(os.ReadFile(filepath.Join(out, "got", "out")))(t))), "the client got")
			standsNowhere(t, out)
		})
	}
	t.Cleanup(func() { // once all have ended
		log, err := exec.Command("git", "-C", filepath.Join(repositories, "team", "words.git"), "log", "--all", "--format=%s").Output()
		if err != nil || string(log) != "begin\n" {
			t.Errorf("the repository has the commits %q, %v", log, err)
		}
	})
}

func (c client) check(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(c.program)
	if err == nil && c.needs != "" {
		err = exec.Command("sh", "-c", c.needs).Run()
	}
	switch {
	case err != nil && slices.Contains(strings.Fields(os.Getenv("AGENT_CI_CLIENTS")), name):
		t.Fatalf("%s: %v", c.program, err)
	case err != nil:
		t.Skipf("needs another %s than is here: %v", c.program, err)
	}
}

// run gives the folder of a run that has ended well, with its checkout and run directory.
func (c client) run(t *testing.T, internet *proxytest.Internet) (dir string) {
	t.Helper()
	w := newWorkshop(t)
	dir = w.dir
	name, _, _ := strings.Cut(strings.TrimPrefix(c.secret, "{name: "), ",")
	job := "version: 1\ntask: {prompt: x, expects: answer}\npolicy:\n  network: {" + c.list(filepath.Join(dir, "ca.pem")) + "proxy: inherit}\n" +
		"  writable: [" + filepath.Join(dir, "got") + "]\n" +
		"  secrets: [" + strings.TrimSuffix(c.secret, "}") + ", ca: " + filepath.Join(dir, "ca.pem") + "}]\nsetup:\n- name: fetch\n  run: |\n    " + strings.ReplaceAll(c.setup, "\n", "\n    ") + "\n    cp " + filepath.Join(dir, "checkout", "out") + " " + filepath.Join(dir, "got", "out") + "\n"
	content := map[string]string{
		"job.yml": job, "session.yml": "version: 1\nturns: [{output: [{say: Done.}]}]\n", "ca.pem": string(internet.Authority),
		"checkout/.gitignore": "*\n!file\n!.gitignore\n", "got/out": "",
	}
	for path, text := range c.files {
		content["checkout/"+path] = text
	}
	for path, text := range content {
		w.write(path, text)
	}
	w.env = append(w.env,
		"GOFLAGS=-mod=mod", "GOPROXY=https://go.example.test/modules", "GONOSUMDB=*", "GOTOOLCHAIN=local", "CARGO_HOME="+filepath.Join(dir, "home", ".cargo"),
		"RUSTUP_HOME="+cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(os.Getenv("HOME"), ".rustup")), "HTTPS_PROXY="+internet.Proxy, name+"="+registryToken)
	w.prepare()
	if out, err := w.agent(prepared...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// list is that of the hosts in policy.network.
func (c client) list(ca string) string {
	if c.allow == "" {
		return ""
	}
	return "allow: [" + strings.ReplaceAll(c.allow, "CA", ca) + "], "
}

// standsNowhere looks for the token in all files.
func standsNowhere(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		must.Same(t, false, bytes.Contains(content, []byte(registryToken)), "the secret stands in", path)
		return err
	})
	must.Is(t, nil, err)
}

// makeTeamRepository makes team/words.git, which takes what is pushed.
func makeTeamRepository(t *testing.T, folder string) {
	t.Helper()
	script := `git init --quiet --bare --initial-branch=main team/words.git && git -C team/words.git config http.receivepack true &&
git init --quiet --initial-branch=main work && echo private words > work/file && git -C work add file &&
git -C work -c user.name=x -c user.email=x@example.invalid commit --quiet -m begin && git -C work push --quiet ../team/words.git main`
	sh := exec.Command("sh", "-ec", script)
	sh.Dir, sh.Env = folder, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
