package main_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

var setupCommands = map[string]func(*testscript.TestScript, bool, []string){"secret": usage("NAME VALUE", checkSecret)}

// checkSecret checks what a secret of the repository was set to: secret NAME VALUE.
func checkSecret(ts *testscript.TestScript, args []string) {
	if value, there := worldOf(ts).repo.Secret(args[0]); !there || value != args[1] {
		ts.Fatalf("the secret %s is %q (%v), want %q", args[0], value, there, args[1])
	}
}

// A person at a terminal is asked for what is missing, and keys are not shown.
func TestInitAsksAtTerminal(t *testing.T) {
	t.Parallel()
	const key, token = "sk-typed-0123456789", "ghp_typed-0123456789"
	forge := forgetest.New(t, forgetest.Options{Token: token})
	repository := forge.AddRepository("octo", "widgets")
	seed := gittest.New(t)
	seed.Write("a", "a\n")
	command := exec.Command("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--message=m", "--all")
	seed.Git("add", "--all")
	command.Dir = seed.Dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seed.Git("push", "-q", repository.Dir, "main")
	var authorization string
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { authorization = r.Header.Get("Authorization") }))
	defer provider.Close()

	client := must.Get(github.New(github.Options{APIURL: forge.APIURL, Token: token}))(t)
	must.Do(t, client.Setup("octo/widgets").PutSecret(t.Context(), "MODEL_API_KEY", "theirs"))
	cmd := exec.Command(binary, "init", "--github")
	cmd.Dir = seed.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GITHUB_API_URL=" + forge.APIURL, "GITHUB_SERVER_URL=" + forge.URL}
	terminal := must.Get(pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200}))(t)
	defer terminal.Close()
	killLate(t, cmd)
	var said bytes.Buffer
	for _, step := range []struct{ question, answer string }{
		{"GitHub token", token},
		{"(OWNER/REPO)", "octo/widgets"},
		{"Who serves the model", "nobody"},
		{"Who serves the model", "other"},
		{"Address of its API", provider.URL + "/v1"},
		{"What it speaks", "soap"},
		{"What it speaks", "chat"},
		{"Model: ", "big"},
		{"(not shown): ", "wrong\x7f\x7f\x7f\x7f\x7f" + key},
		{"Go on? [Y/n]: ", ""},
		{"Replace it, yes or no [no]: ", "yes"},
	} {
		expectOn(t, terminal, &said, step.question)
		must.Do(t, must.Err(terminal.WriteString(step.answer+"\r")))
	}
	expectOn(t, terminal, &said, "pull request: ")
	_ = cmd.Wait()
	if value, _ := repository.Secret("MODEL_API_KEY"); value != key || authorization != "Bearer "+key || len(repository.PullRequests()) != 1 {
		t.Errorf("the secret is %q, the provider was asked with %q\n%s", value, authorization, said.String())
	}
	must.Lack(t, said.String(), key, token)
	if files, _ := filepath.Glob(seed.Path(".github")); len(files) > 0 {
		t.Errorf("files are written here: %q", files)
	}
}

// A person who would not see a question is not asked.
func TestInitAsksNothingWithoutTerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "init", "--github")
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var log bytes.Buffer
	cmd.Stderr = &log
	terminal := must.Get(pty.Start(cmd))(t)
	defer terminal.Close()
	killLate(t, cmd)
	if err := cmd.Wait(); err == nil || !strings.Contains(log.String(), "there is no GitHub token") {
		t.Errorf("%v: %s", err, log.String())
	}
}

// expectOn reads a terminal until words come behind what was read before.
func expectOn(t *testing.T, terminal *os.File, said *bytes.Buffer, words string) {
	t.Helper()
	from, read := said.Len(), make([]byte, 1024)
	for !strings.Contains(said.String()[from:], words) {
		n, err := terminal.Read(read)
		said.Write(read[:n])
		must.Do(t, err, words, "did not come", said.String())
	}
}
