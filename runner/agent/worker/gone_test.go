package worker

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestWhatWasTakenOverIsToldToStandOnlyWhereItDoes(t *testing.T) {
	e := Earlier{Agents: []*transcript.Agent{{ID: "id-Curie", Name: "Curie", Status: "shutdown", AskedBy: transcript.MainAgent}}}
	if words := e.gone(); !strings.Contains(words, "taken over of their changes stands.") {
		t.Error(words)
	}
	e.Found.Away = workspace.InPatches
	if words := e.gone(); !strings.Contains(words, "taken over of their changes was applied again, as far as it fits.") {
		t.Error(words)
	}
}
