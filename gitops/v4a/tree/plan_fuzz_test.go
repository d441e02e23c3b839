package tree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
)

// FuzzPlan throws patches of each dialect at files.
func FuzzPlan(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n b\n\n@@\n+x\n*** End of File\n*** Add File: f\n+f\n*** Delete File: g\n*** End Patch", "a\r\nb")
	f.Add("<<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n a\n*** Update File: f\n@@\n+b\n*** End Patch\nEOF", "\ufeffa\r")
	f.Add("@@ a\n-b\n+c\n@@\n \n*** End of File\n", "a\nb\n\n")
	f.Fuzz(func(t *testing.T, text, file string) {
		if len(text) > 1<<16 || len(file) > 1<<16 {
			t.Skip("enough is known of smaller ones")
		}
		if patch, err := v4a.Parse(text); err == nil {
			checkPlan(t, patch, file)
		}
		for _, op := range [...]v4a.Op{v4a.Add, v4a.Update, v4a.Delete} {
			if patch, err := v4a.ParseDiff(op, "f", text); err == nil {
				checkPlan(t, patch, file)
			}
		}
	})
}

// checkPlan plans and commits a patch in a tree where the first few paths that
// it names are files of that text.
func checkPlan(t *testing.T, patch v4a.Patch, file string) {
	root := must.Get(os.OpenRoot(t.TempDir()))(t)
	defer root.Close()
	for i, name := range v4a.Paths(patch) {
		if parts, problem := splitPath(name); i < 3 && problem == "" {
			name = strings.Join(parts, "/")
			_ = root.MkdirAll(path.Dir(name), 0o755)
			_ = root.WriteFile(name, []byte(file), 0o644)
		}
	}
	plan, err := NewPlan(t.Context(), OnRoot(root), patch)
	if err != nil {
		checkRefusal(t, err)
		return
	}
	must.Is(t, nil, plan.Diff(&bytes.Buffer{}))
	must.Do(t, plan.Commit(t.Context()))
	for _, c := range plan.changed {
		checkWritten(t, root, &c)
	}
}

func checkRefusal(t *testing.T, err error) {
	_, isPath := errors.AsType[*PathError](err)
	_, isMatch := errors.AsType[*v4a.MatchError](err)
	if !isPath && !isMatch {
		t.Errorf("error of NewPlan: %v", err)
	}
	if n := len(err.Error()); n > 1<<17 {
		t.Errorf("error of %d bytes", n)
	}
}

func checkWritten(t *testing.T, root *os.Root, c *change) {
	got, err := root.ReadFile(c.Path)
	switch {
	case c.Op == v4a.Delete && !errors.Is(err, fs.ErrNotExist):
		t.Errorf("%q is not deleted: %v", c.Path, err)
	case c.Op != v4a.Delete && (err != nil || string(got) != c.file.content):
		t.Errorf("%q is %q (%v), want %q", c.Path, got, err, c.file.content)
	}
}
