package files

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// TestSearchEndsAtTimeLimit gives a search no time at all.
func TestSearchEndsAtTimeLimit(t *testing.T) {
	dir := t.TempDir()
	toolstest.Write(t, dir, map[string]string{"a": "text\n", "b": "text\n"})
	g := grepFiles{Options: Options{Dir: toolstest.Folder(t, dir)}, patience: 0}
	got, err := Tool(grepSpec, g.grep).Run(t.Context(), tools.Call{Input: `{"pattern":"text"}`})
	if err != nil || !got.Failed || !strings.Contains(got.Output, "narrow the search with path or include") {
		t.Errorf("got %+v, %v", got, err)
	}
}
