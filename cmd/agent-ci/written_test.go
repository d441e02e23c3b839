package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
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
				if told := string(body["messages"]); n == 3 && !strings.Contains(told, "M greet.sh") || n == 3 && !strings.Contains(told, "hello world") {
					t.Errorf("what came of the edit and the command is not told: %s", told)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"id": "c", "choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": wordsAlone[n-1]}, "finish_reason": "stop"}}})
			}))
			defer server.Close()
			repo := widgets(t)
			cmd := exec.Command(binary, "run", "--prompt", "Greet.", "--repo", repo, "--out", filepath.Join(t.TempDir(), "out"), "--publish", "none",
				"--set", "model.wire=chat", "--set", "model.stream=false", "--set", "model.tools="+test.tools, "--set", "model.name=words", "--set", "limits.cost_usd=0")
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
				"OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef",
			}
			if confines() == sandbox.LevelNone {
				cmd.Env = append(cmd.Env, "AGENT_CI_POLICY_SANDBOX="+string(grants.DangerFullAccess))
			}
			printed, _ := cmd.CombinedOutput()
			if !strings.Contains(string(printed), "\n"+test.ends) && !strings.HasPrefix(string(printed), test.ends) {
				t.Errorf("the run does not end as %s:\n%s", test.ends, printed)
			}
		})
	}
}
