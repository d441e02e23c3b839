package body

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// alone is a body that has no comments, and composed one that may have all.
func alone(v *transcript.View, o Options) (string, error) {
	posts, err := Compose(v, o)
	return posts.Body, err
}

func composed(v *transcript.View, o Options) (Posts, error) {
	o.Comments = MaxComments
	return Compose(v, o)
}

// bare is a run that was killed: no summary, no plan, nothing verified, nothing
// that confines commands, scripted answers and a call that never ended.
func bare() []transcripttest.Happening {
	return []transcripttest.Happening{
		{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: "20260301T090000Z-ffffffff", Version: "v0.1.0", Key: "prompt-12345678", Publish: "local", Scripted: "session.json"}},
		{Kind: transcript.TypeTask, Data: transcript.Task{Source: "prompt", Text: "Fix it."}},
		{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Base: "main", BaseSHA: strings.Repeat("a", 40), Path: "."}},
		{Kind: transcript.TypePolicy, Data: transcript.Policy{Sandbox: "workspace-write", Network: "loopback", Level: "none"}},
		transcripttest.Called(1, "c1", "exec_command", `{"cmd":"sleep 1000"}`),
	}
}
