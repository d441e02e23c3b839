package tools

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestToolsKnowNothingOfTheRunner keeps the direction of imports: what a tool
// needs from above comes to it as a function or an interface.
func TestToolsKnowNothingOfTheRunner(t *testing.T) {
	const module = "github.com/agent-ci/agent-ci/"
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if room, ours := strings.CutPrefix(imported, module); ours && (strings.HasPrefix(room, "runner") || strings.HasPrefix(room, "cmd")) {
				t.Errorf("%s imports %s", path, room)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("only %d files were looked at", files)
	}
}
