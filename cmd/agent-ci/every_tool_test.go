package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// TestEveryToolOverHTTP plays a session over HTTP in which each tool is called, and
// compares the transcript with the one that was looked through. The server
// checks each request by the description of the API.
func TestEveryToolOverHTTP(t *testing.T) {
	t.Parallel()
	events, paths := play(t, "session.yml", "tools.hosted=[web_search]")
	everyToolIsPlayed(t, events)
	golden.Compare(t, filepath.Join("testdata", "every_tool", "transcript.json"), string(normalised(t, responsesFirst(events), paths)))
}

// TestEveryToolInScripts is the same for a model that calls tools in scripts.
func TestEveryToolInScripts(t *testing.T) {
	t.Parallel()
	events, paths := play(t, "code_mode.yml", "model.tools=code")
	golden.Compare(t, filepath.Join("testdata", "every_tool", "code_mode.json"), string(normalised(t, responsesFirst(events), paths)))
}

// TestEveryToolOfOpenCode is the same for a model with the tools of OpenCode.
func TestEveryToolOfOpenCode(t *testing.T) {
	t.Parallel()
	events, paths := play(t, "opencode.yml", "model.tools=opencode")
	text := normalised(t, responsesFirst(events), paths)
	for _, name := range append(dialect.NamesInFamily(dialect.OpenCode, dialect.Plans, dialect.Looks, dialect.Edits), "bash") {
		must.Same(t, true, bytes.Contains(text, []byte(`"tool": "`+name+`"`)), name, "is not played")
	}
	golden.Compare(t, filepath.Join("testdata", "every_tool", "opencode.json"), string(text))
}

// play plays a session. It gives the events of the run and what stands for the paths of the run.
func play(t *testing.T, session, setting string) (events []transcript.Event, paths *strings.Replacer) {
	t.Helper()
	server := must.Get(modeltest.Start(filepath.Join("testdata", "every_tool", session), modeltest.Options{Usage: model.Usage{Input: 1000, Output: 10}}))(t)
	defer server.Close()
	repo, out := widgets(t), filepath.Join(t.TempDir(), "out")
	if printed, err := playingRun(t, server.BaseURL(), repo, out, setting).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
	must.None(t, server.Faults(), "the model's server found")
	return readEvents(t, filepath.Join(out, "transcript.jsonl")), strings.NewReplacer(out, "$RUN", repo, "$REPO")
}

// playingRun is a run with a server of tools, dynamic tools and hooks.
func playingRun(t *testing.T, address, repo, out, setting string) *exec.Cmd {
	t.Helper()
	home := homeWithToolServer(t)
	cmd := scriptedRun(t, address, repo, out, "--prompt", "Play.", "--set", setting, "--set", "tools.dynamic="+dynamicTools,
		"--set", `mcp_servers={shelf: {command: toolserver, args: [--resources], tools: [echo, read]}}`, "--set", "hooks="+playedHooks)
	cmd.Env = append(cmd.Env, "HOME="+home, "PATH="+filepath.Join(home, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// dynamicTools are tools of the job's own: a script, a program of the repository, and
// one that has to be looked for.
const dynamicTools = `[
	{name: lookup, description: Looks a word up., input_schema: {type: object, properties: {word: {type: string}}, required: [word]}, run: "read -r word; echo $word; pwd"},
	{name: define, description: Defines a word., input_schema: {type: object}, run: [./define.sh]},
	{name: tides, description: Tells of the tides., input_schema: {type: object, properties: {harbour: {type: string}}}, run: "echo '[{\"type\":\"input_text\",\"text\":\"high\"}]'", defer: true},
]`

// playedHooks let pass, refuse, rewrite and replace.
const playedHooks = `{
	begins: {on: SessionStart, run: [sh, -c, "echo '{\"hookSpecificOutput\": {\"additionalContext\": \"Be brief.\"}}'"]},
	refuses: {on: PreToolUse, tools: [lookup], run: [sh, -c, "grep -q forbidden && { echo not this word >&2; exit 2; }; exit 0"]},
	rewrites: {on: PreToolUse, tools: [mcp__shelf__echo], run: [sh, -c, "echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":{\"text\":\"rewritten\"}}}'"]},
	replaces: {on: PostToolUse, tools: [define], run: [sh, -c, "echo '{\"hookSpecificOutput\": {\"updatedToolOutput\": \"replaced\"}}'"]},
}`

// definer answers each call by the same words.
const definer = "#!/bin/sh\necho a greeting\n"

// picture is a PNG of four pixels.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEklEQVR42mP4z8DAAMIM/4EAAB/uBfvxq7p3AAAAAElFTkSuQmCC"

// widgets is a repository with a program, a picture and a pipe that nobody
// writes to.
func widgets(t *testing.T) string {
	t.Helper()
	pixels := must.Get(base64.StdEncoding.DecodeString(picture))(t)
	w := newWorkshop(t)
	dir := must.Get(filepath.EvalSymlinks(w.dir))(t)
	for name, text := range map[string]string{
		"greet.sh": "echo hello nobody\n", "define.sh": definer, ".gitignore": "held\n", "four.png": string(pixels),
		".agents/skills/greeting/SKILL.md": "---\nname: greeting\ndescription: How greetings are written here.\n---\nIn lower-case letters.\n",
	} {
		w.program(name, text)
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "held"), 0o600))
	w.repository(dir)
	return dir
}

// scriptedRun is a run in a repository, whose model is at an address.
func scriptedRun(t *testing.T, address, repo, out string, args ...string) *exec.Cmd {
	t.Helper()
	w := newWorkshop(t, "OPENAI_BASE_URL="+address, "OPENAI_API_KEY=sk-test-0123456789abcdef")
	cmd := exec.Command(binary, append([]string{"run", "--repo", repo, "--out", out, "--publish", "none"}, args...)...)
	cmd.Env = w.env
	return cmd
}

func readEvents(t *testing.T, path string) []transcript.Event {
	t.Helper()
	var events []transcript.Event
	for event, err := range transcript.Read(strings.NewReader(read(t, path))) {
		must.Do(t, err)
		events = append(events, event)
	}
	return events
}

// responsesFirst puts each response before its calls: they start while it is on
// its way, and nothing says which of the two is written first.
func responsesFirst(events []transcript.Event) []transcript.Event {
	var sorted []transcript.Event
	behindRequest := 0
	for _, event := range events {
		if event.Type == transcript.TypeModelResponse {
			sorted = slices.Insert(sorted, behindRequest, event)
			continue
		}
		sorted = append(sorted, event)
		if event.Type == transcript.TypeModelRequest {
			behindRequest = len(sorted)
		}
	}
	return sorted
}

// everyToolIsPlayed takes the tools that there are from the refusal of a job that denies another one.
func everyToolIsPlayed(t *testing.T, events []transcript.Event) {
	t.Helper()
	played := make(map[string]bool)
	for _, event := range events {
		if event.Type == transcript.TypeToolFinished {
			played[dataOf[transcript.ToolFinished](t, event).Tool] = true
		}
	}
	refused, _ := playingRun(t, "http://127.0.0.1:9", widgets(t), filepath.Join(t.TempDir(), "out"), "tools.deny=[no_such_tool]").CombinedOutput()
	_, list, ok := strings.Cut(string(refused), "the tools are ")
	list, _, ended := strings.Cut(list, ".\n")
	if !ok || !ended {
		t.Errorf("nothing says which tools there are: %s", refused)
	}
	for tool := range strings.SplitSeq(list, ", ") {
		if !played[tool] {
			t.Errorf("%s is not played in testdata/every_tool/session.yml", tool)
		}
	}
}

// changing are the fields that differ from run to run, and those that tell of
// other things than of tools.
var changing = []string{"seconds", "sha256", "instructions", "prompt_cache_key", "usage"}

var changingText = []struct{ pattern, with string }{
	{`Wall time: [0-9.]+ seconds`, "Wall time: N seconds"},
	{`Wall time [0-9.]+ seconds`, "Wall time N seconds"},
	{`"wall_time_seconds":[0-9.]+`, `"wall_time_seconds":N`},
	{`"duration_seconds":[0-9.]+`, `"duration_seconds":N`},
}

// normalised is a transcript without what differs from run to run: times,
// digests, paths, and what a run is told before its first turn.
func normalised(t *testing.T, events []transcript.Event, paths *strings.Replacer) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, event := range events {
		var data map[string]any
		must.Do(t, json.Unmarshal(event.Data, &data))
		switch event.Type {
		case transcript.TypeRunStarted, transcript.TypeTask, transcript.TypeWorkspace, transcript.TypePolicy:
			data = nil
		case transcript.TypeModelRequest:
			delete(data, "bytes") // with the length of paths and times
			if settings, _ := data["settings"].(map[string]any); settings["input"] != nil {
				settings["input"] = settings["input"].([]any)[:1] // the instructions stand behind the tools
			}
			if data["turn"] == 1.0 {
				delete(data, "input")
			}
		case transcript.TypeRunFinished:
			delete(data, "files")
			delete(data, "base_sha") // of a commit made now
		case transcript.TypeToolFinished:
			if output, _ := data["output"].(string); paths.Replace(output) != output {
				delete(data, "bytes") // with the length of paths
			}
		}
		must.Do(t, plainjson.Write(&text, map[string]any{"type": event.Type, "data": steady(data, paths)}))
	}
	return text.Bytes()
}

func steady(value any, paths *strings.Replacer) any {
	switch v := value.(type) {
	case string:
		v = paths.Replace(v)
		for _, change := range changingText {
			v = regexp.MustCompile(change.pattern).ReplaceAllString(v, change.with)
		}
		return v
	case []any:
		for i := range v {
			v[i] = steady(v[i], paths)
		}
	case map[string]any:
		for _, name := range changing {
			delete(v, name)
		}
		for name := range v {
			v[name] = steady(v[name], paths)
		}
	}
	return value
}
