package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// TestASearchEndsInTime gives a search no time at all.
func TestASearchEndsInTime(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := grepFiles{place: place{Dir: toolstest.Folder(t, dir)}, patience: 0}
	got, err := tool(grepSpec, g.grep).Run(t.Context(), tools.Call{Input: `{"pattern":"text"}`})
	if err != nil || !got.Failed || !strings.Contains(got.Output, "narrow the search with path or include") {
		t.Errorf("got %+v, %v", got, err)
	}
}
