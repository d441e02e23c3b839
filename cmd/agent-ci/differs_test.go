package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

const differsSession = `version: 1
turns:
  - output:
      - {call: exec_command, arguments: {cmd: 'echo hello world >greet.sh'}}
  - output: [{say: Done.}]
`

// A record that says what the replay does not come to is found out, also where the
// digests of its chain were made anew.
func TestReplayComparesWhatARecordSays(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	repo := filepath.Join(w.dir, "repo")
	w.write("repo/greet.sh", "echo hello nobody\n")
	w.git(repo, "init", "--quiet")
	w.git(repo, "add", "--all")
	w.git(repo, "commit", "--quiet", "--message=begin")
	w.write("session.yml", differsSession)
	if told, err := w.agent("run", "--prompt", "x", "--repo", repo, "--out", "run", "--publish", "local", "--quiet", "--replay", "session.yml",
		"--set", "verify=[{name: greets, run: grep world greet.sh}]"); err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	for name, c := range map[string]struct {
		of           transcript.Type
		from, to     string
		live, frozen string // what differs
	}{
		"nothing":          {},
		"the outcome":      {transcript.TypeRunFinished, `"outcome":"changed","reason":"committed"`, `"outcome":"no_changes","reason":"nothing_to_do"`, "outcome", "outcome"},
		"a signal":         {transcript.TypeRunFinished, `"outcome":"changed","reason":"committed"`, `"outcome":"cancelled","reason":"interrupted"`, "outcome", "exit code"},
		"a forge's end":    {transcript.TypeRunFinished, `"outcome":"changed","reason":"committed"`, `"outcome":"forge_failed","reason":"push_refused"`, "outcome", "exit code"},
		"another reason":   {transcript.TypeRunFinished, `"reason":"committed"`, `"reason":"pull_request"`, "reason", "reason"},
		"another digest":   {transcript.TypeChange, `"sha256":"`, `"sha256":"0`, "changes.patch", "changes.patch"},
		"a red check":      {transcript.TypeVerify, `"after":"green","passed":true`, `"after":"red","passed":true`, "check greets", "check greets"},
		"a green baseline": {transcript.TypeVerify, `"before":"red","after":"green"`, `"before":"green","after":"green"`, "check greets", "result.json"},
		"another check":    {transcript.TypeVerify, `grep world`, `true or`, "check greets", "check greets"},
		"checks in all":    {transcript.TypeVerify, `"attempt":1,"passed":true`, `"attempt":1,"passed":false`, "", "all checks pass"},
		"no change":        {transcript.TypeChange, `"files":[{`, `"files":[],"was":[{`, "tree", "outcome"},
		"the exit status":  {transcript.TypeRunFinished, `"exit_code":0`, `"exit_code":3`, "", "exit code"},
	} {
		t.Run(name, func(t *testing.T) {
			altered := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(altered, os.DirFS(filepath.Join(w.dir, "run"))); err != nil {
				t.Fatal(err)
			}
			rechain(t, altered, c.of, c.from, c.to)
			w.replays(t, c.live, altered, "--repo", repo)
			w.replays(t, c.frozen, altered, "--repo", repo, "--frozen")
		})
	}
}

func (w *workshop) agent(args ...string) (string, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = w.env, w.dir
	told, err := cmd.CombinedOutput()
	return string(told), err
}

// replays replays a record, which has to differ in that, or in nothing.
func (w *workshop) replays(t *testing.T, differs string, args ...string) {
	t.Helper()
	told, err := w.agent(append([]string{"replay", "--quiet"}, args...)...)
	if differs == "" && err != nil || differs != "" && (err == nil || !strings.Contains(told, "\n"+differs+"\n--- recorded\n")) {
		t.Errorf("%q: %v, want a difference in %q\n%s", args[1:], err, differs, told)
	}
}

// rechain replaces a text in the events of a kind, and makes the digests fit.
func rechain(t *testing.T, dir string, kind transcript.Type, from, to string) {
	t.Helper()
	path, result := filepath.Join(dir, "transcript.jsonl"), filepath.Join(dir, "result.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var chain bytes.Buffer
	head := strings.Repeat("0", 64)
	for e, err := range transcript.Read(bytes.NewReader(raw)) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Prev = head; e.Type == kind {
			e.Data = json.RawMessage(strings.Replace(string(e.Data), from, to, 1))
		}
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(line)
		head = hex.EncodeToString(sum[:])
		chain.Write(append(line, '\n'))
	}
	var told map[string]any
	if raw, err = os.ReadFile(result); err == nil {
		err = json.Unmarshal(raw, &told)
	}
	told["transcript_sha256"] = head
	if err == nil {
		raw, err = json.Marshal(told)
	}
	if err == nil {
		err = os.WriteFile(result, raw, 0o600)
	}
	if err == nil {
		err = os.WriteFile(path, chain.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
