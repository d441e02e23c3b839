// Package toolstest opens folders for tests of tools. It knows no tool.
package toolstest

import (
	"os"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/tools"
)

// Folder returns a folder that commands see unchanged, until the test ends.
func Folder(tb testing.TB, path string) tools.Folder {
	tb.Helper()
	return tools.Folder{Path: path, Root: sync.OnceValues(func() (*os.Root, error) {
		root, err := os.OpenRoot(path)
		if err == nil {
			tb.Cleanup(func() { root.Close() })
		}
		return root, err
	})}
}
