package filetime_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/filetime"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMarkSeparatesFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	written := func() time.Time {
		must.Do(t, os.WriteFile(path, []byte("text\n"), 0o600))
		return must.Get(os.Stat(path))(t).ModTime()
	}
	for range 20 {
		before, mark, after := written(), filetime.Mark(), written()
		if !before.Before(mark) || !after.After(mark) {
			t.Errorf("before %v, mark %v, after %v", before, mark, after)
		}
	}
}
