package main_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// artifactCommands are about what workflows upload.
var artifactCommands = map[string]func(*testscript.TestScript, bool, []string){
	"artifact": addArtifact,
}

// addArtifact uploads a folder as a run of a workflow does: artifact RUN NAME DIR
// [expired]. It prints the id.
func addArtifact(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: artifact RUN NAME DIR [expired]")
	}
	run, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	packed, err := zipped(ts.MkAbs(args[2]))
	ts.Check(err)
	id := worldOf(ts).repo.AddArtifact(run, forgetest.Artifact{Name: args[1], Zip: packed, Expired: len(args) > 3})
	fmt.Fprintf(ts.Stdout(), "%d\n", id)
}

func zipped(dir string) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := w.AddFS(os.DirFS(dir))
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// On a terminal the page that was made here is shown, by a browser that gets no
// token; where it can't be shown, its path is still there.
func TestFetchOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	checkout := filepath.Join(w.dir, "checkout")
	w.git(w.dir, "init", "--quiet", "--initial-branch=main", checkout)
	w.git(checkout, "commit", "--quiet", "--allow-empty", "--message=begin")
	w.write("say.yml", "version: 1\nturns:\n  - output: [{say: Nothing.}]\n")
	run := exec.Command(binary, "run", "--prompt", "x", "--quiet", "--repo", checkout, "--replay", filepath.Join(w.dir, "say.yml"), "--out", filepath.Join(w.dir, "run"))
	run.Env, run.Dir = w.env, w.dir
	if told, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	const evil = "<script>evil()</script>"
	w.write("run/report.html", evil)
	packed, err := zipped(filepath.Join(w.dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	f := forgetest.New(t, forgetest.Options{})
	f.AddRepository("octo", "widgets").AddArtifact(7, forgetest.Artifact{Name: "agent-ci-run", Zip: packed})
	w.write("browser", "#!/bin/sh\n{ cat \"$1\"; echo \"$1 in $PWD token: $GITHUB_TOKEN\"; } > \"$OPENED\"\n")
	if err := os.Chmod(filepath.Join(w.dir, "browser"), 0o755); err != nil {
		t.Fatal(err)
	}
	opened := filepath.Join(w.dir, "opened")
	if err := syscall.Mkfifo(opened, 0o600); err != nil {
		t.Fatal(err)
	}
	screen := func(more ...string) string {
		cmd := exec.Command(binary, "fetch", "octo/widgets", "7")
		cmd.Dir = w.dir
		cmd.Env = append(append(w.env, "GITHUB_API_URL="+f.APIURL, "GITHUB_SERVER_URL="+f.URL, "GITHUB_TOKEN="+f.Token, "OPENED="+opened, "XDG_CACHE_HOME="+w.dir, startsVariable+"="+filepath.Join(w.dir, "starts")), more...)
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		killLate(t, cmd)
		said, _ := io.ReadAll(terminal) // it ends in an error, as terminals do
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return string(said)
	}
	said := screen("BROWSER=" + filepath.Join(w.dir, "browser"))
	page := readFrom(t, opened, " token: ")
	if !strings.Contains(page, "<!doctype html>") && !strings.Contains(page, "<!DOCTYPE html>") || strings.Contains(page, evil) {
		t.Errorf("the page that was opened is not ours: %.200s", page)
	}
	if !strings.HasSuffix(page, "report.html in / token: \n") || strings.Contains(page, f.Token) {
		t.Errorf("the browser got: %q", page[max(0, len(page)-200):])
	}
	started := noted(t, filepath.Join(w.dir, "starts"))
	if len(started) != 1 || started[0].Use != outside.Browser.Name {
		t.Errorf("outside of a sandbox it started %+v", started)
	}
	wantStarts(t, started)
	if !strings.Contains(said, "/agent-ci/fetched/octo-widgets-7-") {
		t.Errorf("the path is not told:\n%s", said)
	}
	if said := screen("BROWSER=no-such-browser"); !strings.Contains(said, "The report is not shown") || !strings.Contains(said, "report.html") {
		t.Errorf("without a browser:\n%s", said)
	}
}

// readFrom reads a pipe up to the end of the line that has the words.
func readFrom(t *testing.T, pipe, words string) string {
	t.Helper()
	f, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0) // a writer of its own: without one it would end
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(late(t)); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			t.Fatalf("%v after %.300s", err, all.String())
		}
		if strings.Contains(line, words) {
			return all.String()
		}
	}
}
