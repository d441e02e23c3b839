package body

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestBodyTellsOfServersOfTools(t *testing.T) {
	ready := transcript.MCPServer{
		Name: "docs", State: transcript.MCPReady, Command: "docs-server", Revision: "2025-11-25", Server: "Docs|<b>", Version: "1.0", File: "extensions/docs.json",
		Tools: []transcript.MCPTool{{Name: "mcp__docs__search", Tool: "search", SHA256: "aa11"}, {Name: "mcp__docs__fetch", Tool: "fetch|x", SHA256: "bb22"}},
	}
	run := append(transcripttest.Greeting(),
		transcripttest.Happening{Kind: transcript.TypeMCPServer, Data: ready},
		transcripttest.Happening{Kind: transcript.TypeMCPServer, Data: transcript.MCPServer{Name: "docs", State: transcript.MCPChanged, Why: "others"}},
		transcripttest.Happening{Kind: transcript.TypeMCPServer, Data: transcript.MCPServer{Name: "late", State: transcript.MCPFailed, Host: "late.example.com", Why: "It did not come."}},
	)
	got, err := alone(projected(t, run), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## MCP servers\n", "| `docs` | `docs-server`, Docs&#124;&lt;b> 1.0, protocol `2025-11-25` | `search` | `aa11` |\n",
		"|  |  | <code>fetch&#124;x</code> | `bb22` |\n", "| `late` | `late.example.com`, ", "failed: It did not come. | | |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the body has no %q:\n%s", want, got)
		}
	}
	if got, err = alone(projected(t, transcripttest.Greeting()), Options{}); err != nil || strings.Contains(got, "Servers of tools") {
		t.Errorf("the body of a run without servers tells of some: %v\n%s", err, got)
	}
}
