package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

// aboutTools are the fields of a request that an endpoint without tools refuses.
var aboutTools = []string{"tools", "tool_choice", "parallel_tool_calls", "functions"}

// wordsAlone are the answers of a model that writes.
var wordsAlone = []string{
	"```read\ngreet.sh\n```\n",
	"greet.sh\n```sh\n<<<<<<< SEARCH\necho hello nobody\n=======\necho hello world\n>>>>>>> REPLACE\n```\n\n```bash\nsh greet.sh\n```\n",
	"The greeting is mended.",
}

// TestEndpointWithoutTools has a model work behind an endpoint for chats that refuses whatever is about
// tools.
func TestEndpointWithoutTools(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tools string
		ends  string
	}{
		"a model that writes": {"aider-diff", "changed/"},
		"a model that calls":  {"function", "model_failed/invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				var body map[string]json.RawMessage
				if err := json.Unmarshal(raw, &body); err != nil {
					t.Error(err)
				}
				for _, field := range aboutTools {
					if _, there := body[field]; there {
						http.Error(w, `{"error":{"message":"unsupported field: `+field+`"}}`, http.StatusBadRequest)
						return
					}
				}
				n := asked.Add(1)
				if int(n) > len(wordsAlone) {
					http.Error(w, `{"error":{"message":"no more"}}`, http.StatusBadRequest)
					return
				}
				if told := string(body["messages"]); n == 3 && !(strings.Contains(told, "M greet.sh") && strings.Contains(told, "Output:\\nhello world")) {
					t.Errorf("what came of the edit and the command is not told: %s", told)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"id": "c", "choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": wordsAlone[n-1]}, "finish_reason": "stop"}}})
			}))
			defer server.Close()
			cmd := writing(t, server.URL+"/v1", widgets(t), filepath.Join(t.TempDir(), "out"),
				"model.wire=chat", "model.stream=false", "model.tools="+test.tools, "model.name=words", "limits.cost_usd=0")
			printed, _ := cmd.CombinedOutput()
			if !strings.Contains(string(printed), "\n"+test.ends) && !strings.HasPrefix(string(printed), test.ends) {
				t.Errorf("the run does not end as %s:\n%s", test.ends, printed)
			}
		})
	}
}

// TestEveryToolInWords plays, for each edit format, a session of a model that has no tools, and compares
// the transcript with the one that was looked through.
func TestEveryToolInWords(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"diff", "udiff", "whole"} {
		t.Run(format, func(t *testing.T) {
			server, err := modeltest.Start(filepath.Join("testdata", "every_tool", "aider_"+format+".yml"), modeltest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			repo, out := widgets(t), filepath.Join(t.TempDir(), "out")
			cmd := writing(t, server.BaseURL(), repo, out, "model.tools=aider-"+format)
			if printed, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, printed)
			}
			if faults := server.Faults(); len(faults) > 0 {
				t.Errorf("the model's server found:\n%s", strings.Join(faults, "\n"))
			}
			events := readEvents(t, filepath.Join(out, "transcript.jsonl"))
			got := fenceMark.ReplaceAll(normalised(t, events, strings.NewReplacer(out, "$RUN", repo, "$REPO")), []byte("id=MARK"))
			holdFile(t, filepath.Join("testdata", "every_tool", "aider_"+format+".json"), string(got))
		})
	}
}

// fenceMark is the mark of an output, which tells of how long its command took.
var fenceMark = regexp.MustCompile(`id=\\"[0-9a-f]{16}\\"`)

// writing runs a model at an address, with settings.
func writing(t *testing.T, address, repo, out string, settings ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, "run", "--prompt", "Play.", "--repo", repo, "--out", out, "--publish", "none")
	for _, setting := range settings {
		cmd.Args = append(cmd.Args, "--set", setting)
	}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"OPENAI_BASE_URL=" + address, "OPENAI_API_KEY=sk-test-0123456789abcdef",
	}
	if confines() == sandbox.LevelNone {
		cmd.Env = append(cmd.Env, "AGENT_CI_POLICY_SANDBOX="+string(grants.DangerFullAccess))
	}
	return cmd
}
