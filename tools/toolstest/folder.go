// Package toolstest has what tests of several tools need: a working directory with files, calls and
// images. It knows no tool.
package toolstest

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
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

// Write writes files below dir, by their names.
func Write(tb testing.TB, dir string, texts map[string]string) {
	tb.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		must.Do(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(tb, os.WriteFile(path, []byte(text), 0o600))
	}
}

// Link makes symbolic links below dir: their targets by their names.
func Link(tb testing.TB, dir string, targets map[string]string) {
	tb.Helper()
	for name, target := range targets {
		must.Do(tb, os.Symlink(target, filepath.Join(dir, name)))
	}
}

// Tree returns all that is below dir by its path: the mode with the text of a file or the target of a link.
func Tree(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	all := map[string]string{}
	must.Do(tb, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		text, _ := os.Readlink(path)
		if err == nil && info.Mode().IsRegular() {
			var raw []byte
			raw, err = os.ReadFile(path)
			text = string(raw)
		}
		name, _ := filepath.Rel(dir, path)
		all[name] = info.Mode().String() + " " + text
		return err
	}))
	return all
}

// Call calls a tool by the dispatcher, as a run does.
func Call(ctx context.Context, tool tools.Tool, name, input string) tools.Result {
	d := tools.Dispatcher{Registry: tools.New(tool), Outputs: new(tools.Outputs)}
	return d.Dispatch(ctx, []tools.Call{{ID: "1", Number: 1, Name: name, Input: input}})[0]
}

// PNG returns a black image of a size.
func PNG(tb testing.TB, width, height int) []byte {
	tb.Helper()
	var file bytes.Buffer
	must.Do(tb, png.Encode(&file, image.NewGray(image.Rect(0, 0, width, height))))
	return file.Bytes()
}

// Hiding returns the view of commands in dir, from which paths are hidden. It is taken when first needed.
func Hiding(tb testing.TB, dir string, paths ...string) func() (*grants.View, error) {
	tb.Helper()
	o := sandbox.Options{Network: sandbox.NetworkNone, Folders: grants.Folders{Mode: grants.WorkspaceWrite, Workspace: dir, Scratch: tb.TempDir()}}
	for _, path := range paths {
		o.DenyRead = append(o.DenyRead, filepath.Join(dir, path))
	}
	return sync.OnceValues(func() (*grants.View, error) { return sandbox.NewView(o, sandbox.LevelFull) })
}

// SwapLinks has a link lead to one target after the other until the test ends.
func SwapLinks(tb testing.TB, link string, targets ...string) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
				_ = os.Symlink(targets[i%len(targets)], link+".next")
				_ = os.Rename(link+".next", link)
			}
		}
	}()
	tb.Cleanup(func() { close(end); <-ended })
}
