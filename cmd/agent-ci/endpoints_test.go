package main_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat/chattest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// TestRunsAtEndpoints has runs and doctor ask endpoints with many quirks, without tools, with thoughts that have to come
// back, and with thoughts and calls in the text. No run finds out the last, so AGENT_CI_MODEL_CHAT names it.
// TestEndpointQuirks of runner/agent and TestFindsEndpointQuirks of runner/setup/doctor ask all.
func TestRunsAtEndpoints(t *testing.T) {
	t.Parallel()
	settings := map[string]string{
		"strict proxy":                  "chat: [no_stream_options, no_reasoning_effort, max_tokens, no_tool_choice, no_response_format]",
		"Ollama, a model without tools": "tools: aider-diff",
		"DeepSeek":                      "chat: [no_response_format]",
		"LM Studio without a parser":    "chat: [text_calls]",
	}
	for _, e := range chattest.Endpoints(t, "../..") {
		proposed, is := settings[e.Name]
		if !is {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := e.Serve(t)
			given, refused := "[]", len(e.Quirks)
			if slices.Contains(e.Quirks, chat.TextCalls) {
				given, refused = "[text_calls]", 0
			}
			w := newWorkshop(t, "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=sk-test-0123456789abcdef", "AGENT_CI_MODEL_NAME=some-model", "AGENT_CI_MODEL_CHAT="+given, openly)
			w.write("job.yml", "version: 1\nname: made\ntask: {prompt: Make it., output_schema: schema.json}\nlimits: {cost_usd: 0}\n"+
				"model: {wire: chat, max_output_tokens: 1000, context_window: 100000, tools: "+e.Tools+"}\n")
			w.write("schema.json", `{"type": "object", "required": ["ok"], "additionalProperties": false, "properties": {"ok": {"const": true}}}`)
			w.write("repo/log.txt", "begin\n")
			repo := filepath.Join(w.dir, "repo")
			w.repository(repo)
			said, err := w.agent("run", "job.yml", "--repo", repo, "--out", "out", "--publish", "local")
			if err != nil || w.git(repo, "show", "agent-ci/made:made.txt") != "made" {
				t.Fatalf("the run ended in %v:\n%s\nrefused: %q", err, said, s.Refused())
			}
			message := w.git(repo, "log", "-1", "--format=%B", "agent-ci/made")
			must.Same(t, true, strings.HasPrefix(message, "All is done"), "the commit has the last words", message)
			must.Same(t, false, strings.Contains(message, chattest.Thought), "it has thoughts", message)
			must.Same(t, refused, len(s.Refused()), "refused", s.Refused())
			w.replays(t, "", "out", "--frozen")
			said, _ = w.agent("doctor", "--online", "--repo", w.dir) // its status is that of the machine
			must.Contain(t, said, "set in the job: model: {"+proposed+", wire: chat}\n")
		})
	}
}

// The job and docs/reference/model.md name the same quirks as there are.
func TestJobAndDocsNameQuirks(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(documents(t)["docs/reference/model.md"], "\n| quirk | what agent-ci does |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(row, " | ")[0], -1) {
			listed = append(listed, name[1])
		}
	}
	must.Same(t, chat.Quirks(), listed, "quirks (-of the model +of docs/reference/model.md)")
	must.Same(t, chat.Quirks(), job.Format().Root.Find("model.chat").Values, "quirks (-of the model +of jobs)")
}
