package main_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// tutorials are the pages that a reader follows from an empty folder to a job, with the
// answers of the model for their two runs.
var tutorials = []struct {
	page, name string
	needs      []string
	patch      string // for apply_patch
	install    string // a command that the page's hook refuses
	// Replaces a command that fetches from a registry which is not reached in CI.
	offline [2]string
}{
	{
		page: "docs/start/python.md", name: "python", needs: []string{"/usr/bin/python3"},
		patch: `
          *** Begin Patch
          *** Update File: slugs.py
          @@
          -def slugify(title):
          +import re
          +
          +
          +def slugify(title):
               """Turns a title into the last part of an address."""
          -    return title.lower().replace(" ", "-")
          +    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
          *** Update File: test_slugs.py
          @@
               assert slugify("Big News") == "big-news"
          +
          +
          +def test_punctuation():
          +    assert slugify("Hello, World!") == "hello-world"
          *** End Patch`,
		install: "pip install left-pad",
		offline: [2]string{
			"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
			"/usr/bin/python3 -m venv --system-site-packages .venv",
		},
	},
	{
		page: "docs/start/node.md", name: "node", needs: []string{"npm"},
		patch: `
          *** Begin Patch
          *** Update File: slugs.js
          @@
           export function slugify(title) {
          -  return title.toLowerCase().replaceAll(" ", "-");
          +  return title
          +    .toLowerCase()
          +    .replace(/[^a-z0-9]+/g, "-")
          +    .replace(/^-|-$/g, "");
           }
          *** Update File: slugs.test.js
          @@
             assert.equal(slugify("Big News"), "big-news");
           });
          +
          +test("punctuation is dropped", () => {
          +  assert.equal(slugify("Hello, World!"), "hello-world");
          +});
          *** End Patch`,
		install: "npm install left-pad",
	},
	{
		page: "docs/start/go.md", name: "go", needs: []string{"go"},
		patch: `
          *** Begin Patch
          *** Update File: slugs.go
          @@
          -import "strings"
          +import (
          +	"regexp"
          +	"strings"
          +)
          +
          +var separators = regexp.MustCompile("[^a-z0-9]+")
           
           // Slugify turns a title into the last part of an address.
           func Slugify(title string) string {
          -	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
          +	return strings.Trim(separators.ReplaceAllString(strings.ToLower(title), "-"), "-")
           }
          *** Update File: slugs_test.go
          @@
           		t.Error(diff)
           	}
           }
          +
          +func TestPunctuationIsDropped(t *testing.T) {
          +	if got := Slugify("Hello, World!"); got != "hello-world" {
          +		t.Error(got)
          +	}
          +}
          *** End Patch`,
		install: "go get example.com/left-pad",
	},
}

// TestTutorials follows each tutorial as a reader would: it saves the files, runs the commands in
// one shell, adds the keys of section 4 to the job and runs that too. Answers are scripted.
func TestTutorials(t *testing.T) {
	t.Parallel()
	if os.Getenv("AGENT_CI_E2E") == "" {
		t.Skip("tutorials fetch from npm and Go's module proxy, and are followed in make e2e only (AGENT_CI_E2E=1)")
	}
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proxytest.Tunnel(w, r.Host) }))
	t.Cleanup(way.Close)
	for _, tutorial := range tutorials {
		t.Run(tutorial.name, func(t *testing.T) {
			for _, program := range append(tutorial.needs, "npx") {
				must.Do(t, must.Err(exec.LookPath(program)), program, "is needed")
			}
			r := newReader(t, way.URL, tutorial.offline)
			r.session(t, "session.yml", "version: 1\nturns:\n  - output:\n      - call: apply_patch\n        input: |"+tutorial.patch+"\n  - output: [{say: Punctuation is dropped. A test holds it.}]\n")
			log := ""
			for _, block := range blocksOf(documents(t)[tutorial.page]) {
				switch {
				case block.saveAs != "":
					r.save(t, block.saveAs, block.text)
				case block.language == "sh":
					log += r.shell(t, block.text)
				case block.language == "yaml":
					r.append(t, block.text)
				case block.language == "text":
					seen := regexp.MustCompile(`[0-9a-f]{12}`)
					for line := range strings.Lines(block.text) {
						if want := seen.ReplaceAllString(line, "COMMIT"); !strings.Contains(seen.ReplaceAllString(log, "COMMIT"), want) {
							t.Errorf("the page shows a line that was not printed: %s\n%s", line, log)
						}
					}
				}
			}
			// The last commands of the page committed all of section 4.
			r.session(t, "session.yml", "version: 1\nturns:\n  - output:\n      - {call: load_skill, arguments: {name: tests}}\n"+
				"      - {call: mcp__everything__echo, arguments: {message: heard}}\n"+
				"      - {call: exec_command, arguments: {cmd: "+tutorial.install+"}}\n  - output:\n      - call: apply_patch\n        input: |"+
				tutorial.patch+"\n  - output: [{say: Punctuation is dropped. A test holds it.}]\n")
			r.forgetSecrets(t)
			must.Contain(t, r.shell(t, "git commit --quiet --all -m 'Without the private registry'\nagent-ci run job.yml --publish none --out ../out"), "proven")
			raw := read(t, filepath.Join(r.home, "out", "transcript.jsonl"))
			for _, want := range []string{"Echo: heard", "Use one assert per test", "no_install"} {
				must.Same(t, true, strings.Contains(raw, want), "the transcript has no", want)
			}
		})
	}
}

// TestTutorialJobsAreValid needs no registry, so that make test sees a key that is gone.
func TestTutorialJobsAreValid(t *testing.T) {
	t.Parallel()
	for _, tutorial := range tutorials {
		t.Run(tutorial.name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, "", [2]string{})
			for _, block := range blocksOf(documents(t)[tutorial.page]) {
				switch {
				case block.saveAs != "":
					r.save(t, block.saveAs, block.text)
				case block.language == "yaml":
					r.append(t, block.text)
				}
			}
			// Hooks are read from the base commit.
			out := r.shell(t, "git init --quiet -b main && git add . && git commit --quiet -m all\nagent-ci validate job.yml")
			must.Contain(t, out, "job.yml: ok")
		})
	}
}

// block is a fenced block of a page. saveAs is the file that the sentence before it names.
type block struct{ language, text, saveAs string }

var (
	blockStart = regexp.MustCompile("^```([a-z]*)$")
	saveAs     = regexp.MustCompile("Save (?:this|it) as `([^`]+)`:")
)

func blocksOf(page string) (blocks []block) {
	before, open := "", false
	for line := range strings.Lines(page) {
		start := blockStart.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case start != nil && !open:
			next := block{language: start[1]}
			if name := saveAs.FindStringSubmatch(before); name != nil {
				next.saveAs = name[1]
			}
			blocks, open = append(blocks, next), true
		case start != nil:
			open, before = false, ""
		case open:
			blocks[len(blocks)-1].text += line
		case strings.TrimSpace(line) != "":
			before = line
		}
	}
	return blocks
}

// reader follows a page in the folder that its commands lead to.
type reader struct {
	home, folder string
	env          []string
	offline      [2]string
}

func newReader(t *testing.T, proxy string, offline [2]string) *reader {
	t.Helper()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	must.Do(t, os.Mkdir(bin, 0o755))
	must.Do(t, os.Symlink(binary, filepath.Join(bin, "agent-ci")))
	t.Cleanup(func() { _ = sandbox.RemoveScratch(home) })
	return &reader{home: home, folder: home, offline: offline, env: []string{
		"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.invalid", "GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.invalid",
		"AGENT_CI_REPLAY=" + filepath.Join(home, "session.yml"), "GOFLAGS=-modcacherw",
		"HTTPS_PROXY=" + cmp.Or(os.Getenv("HTTPS_PROXY"), proxy), "NODE_EXTRA_CA_CERTS=" + os.Getenv("NODE_EXTRA_CA_CERTS"),
		// Whoever starts agent-ci has these; the values go nowhere.
		"PYPI_TOKEN=pypi-0123456789", "NPM_TOKEN=npm-0123456789", "GOPROXY_PASSWORD=goproxy-0123456789",
	}}
}

func (r *reader) session(t *testing.T, name, text string) {
	t.Helper()
	must.Write(t, filepath.Join(r.home, name), text)
}

// save writes a file of the page. The lists of hosts of a job hold, and are reached by the proxy of
// the test, since a registry may have an address here that no list opens.
func (r *reader) save(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(r.folder, path)
	must.Write(t, path, r.here(text))
}

func (r *reader) here(job string) string {
	if r.offline[0] != "" {
		job = strings.ReplaceAll(job, r.offline[0], r.offline[1])
	}
	return regexp.MustCompile(`network: \{allow: \[\{preset: [a-z]+\}\]`).ReplaceAllString(job, "$0, proxy: inherit")
}

func (r *reader) append(t *testing.T, keys string) {
	t.Helper()
	path := filepath.Join(r.folder, "job.yml")
	job := read(t, path)
	must.Write(t, path, job+r.here(keys))
}

// forgetSecrets takes the policy out of the job: its private registry is an example.
func (r *reader) forgetSecrets(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.folder, "job.yml")
	job := read(t, path)
	must.Write(t, path, regexp.MustCompile(`(?m)^policy:\n(  .*\n)+`).ReplaceAllString(job, ""))
}

// shell runs commands of the page and remembers the folder that they end in.
func (r *reader) shell(t *testing.T, script string) (printed string) {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", script+"\npwd >"+filepath.Join(r.home, "folder"))
	cmd.Dir, cmd.Env = r.folder, r.env
	out, err := cmd.CombinedOutput()
	must.Do(t, err, script, out)
	folder := read(t, filepath.Join(r.home, "folder"))
	r.folder = strings.TrimSpace(folder)
	return string(out)
}
