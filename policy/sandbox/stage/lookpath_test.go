//go:build unix

package stage

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/tool": 0o700, "bin/text": 0o600, "tool": 0o700} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode))
	}
	bin := filepath.Join(dir, "bin")
	for _, test := range []struct{ name, program, path, want string }{
		{"found", "tool", "/nowhere:" + bin, filepath.Join(bin, "tool")},
		{"not executable", "text", bin, ""},
		{"a folder", "bin", dir, ""},
		{"relative folders are passed over", "tool", ".:bin::", ""},
		{"no PATH", "tool", "", ""},
		{"absolute", "/bin/x", bin, "/bin/x"},
		{"relative to the directory", "./tool", bin, filepath.Join(dir, "tool")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := LookPath(test.program, dir, []string{"PATH=/other", "PATH=" + test.path})
			if got != test.want || (err != nil) != (test.want == "") || err != nil && !errors.Is(err, exec.ErrNotFound) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
