package worker

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestReportsMergedWorkOnlyIfPresent(t *testing.T) {
	e := StoppedAgent{Agents: []*transcript.Agent{{ID: "id-Curie", Name: "Curie", Status: "shutdown", AskedBy: transcript.MainAgent}}}
	if words := e.describeLostAgents(); !strings.Contains(words, "taken over of their changes stands.") {
		t.Error(words)
	}
	e.Found.Place = workspace.InPatches
	if words := e.describeLostAgents(); !strings.Contains(words, "taken over of their changes was applied again, as far as it fits.") {
		t.Error(words)
	}
}
