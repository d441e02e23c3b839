// Package toolstest helps to test tools. It makes folders, files, views and images, and calls a tool.
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

// Folder returns the folder at path. It is closed when the test ends.
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

// Write writes files below dir. texts has their contents by path.
func Write(tb testing.TB, dir string, texts map[string]string) {
	tb.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		must.Do(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(tb, os.WriteFile(path, []byte(text), 0o600))
	}
}

// Link makes symbolic links below dir. targets has their targets by path.
func Link(tb testing.TB, dir string, targets map[string]string) {
	tb.Helper()
	for name, target := range targets {
		must.Do(tb, os.Symlink(target, filepath.Join(dir, name)))
	}
}

// Tree returns all files and folders below dir by path: their mode, followed by a file's content or a link's target.
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

// Call calls a tool through a dispatcher, as a run does. name is the tool's name in the call.
func Call(ctx context.Context, tool tools.Tool, name, input string) tools.Result {
	d := tools.Dispatcher{Registry: tools.New(tool), Outputs: new(tools.Outputs)}
	return d.Dispatch(ctx, []tools.Call{{ID: "1", Number: 1, Name: name, Input: input}})[0]
}

// Output returns the output of a call. It reports a call that failed.
func Output(tb testing.TB, r tools.Result) string {
	tb.Helper()
	if r.Failed {
		tb.Errorf("the call failed: %s", r.Output)
	}
	return r.Output
}

// Failure returns the output of a call that failed. It reports a call that did not fail.
func Failure(tb testing.TB, r tools.Result) string {
	tb.Helper()
	if !r.Failed {
		tb.Errorf("the call did not fail: %s", r.Output)
	}
	return r.Output
}

// PNG returns a black PNG image of this size.
func PNG(tb testing.TB, width, height int) []byte {
	tb.Helper()
	var file bytes.Buffer
	must.Do(tb, png.Encode(&file, image.NewGray(image.Rect(0, 0, width, height))))
	return file.Bytes()
}

// Hiding returns a function that returns the view of commands in dir, in which paths are hidden.
func Hiding(tb testing.TB, dir string, paths ...string) func() (*grants.View, error) {
	tb.Helper()
	o := sandbox.Options{Network: sandbox.NetworkNone, Folders: grants.Folders{Mode: grants.WorkspaceWrite, Workspace: dir, Scratch: tb.TempDir()}}
	for _, path := range paths {
		o.DenyRead = append(o.DenyRead, filepath.Join(dir, path))
	}
	return sync.OnceValues(func() (*grants.View, error) { return sandbox.NewView(o, sandbox.LevelFull) })
}

// SwapLinks makes the link at the path link lead to one target after the other until the test ends.
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
