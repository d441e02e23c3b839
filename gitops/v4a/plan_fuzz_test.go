package v4a

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/util"
)

// FuzzPlan throws bytes at the parser of each dialect and at files.
func FuzzPlan(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+c\n*** End Patch", "a\nb\n")
	f.Add("*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n b\n\n@@\n+x\n*** End of File\n*** Add File: f\n+f\n*** Delete File: g\n*** End Patch", "a\r\nb")
	f.Add("<<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n a\n*** Update File: f\n@@\n+b\n*** End Patch\nEOF", "\ufeffa\r")
	f.Add("@@ a\n-b\n+c\n@@\n \n*** End of File\n", "a\nb\n\n")
	f.Add("+a\n+b\r\n", "")
	f.Fuzz(func(t *testing.T, text, file string) {
		if len(text) > 1<<16 || len(file) > 1<<16 {
			t.Skip("enough is known of smaller ones")
		}
		if patch, err := Parse(text); err == nil {
			checkPlan(t, patch, file)
		} else if _, ok := err.(*ParseError); !ok {
			t.Errorf("error of Parse: %v", err)
		}
		for _, op := range [...]Op{Add, Update, Delete} {
			if patch, err := ParseDiff(op, "f", text); err == nil {
				checkPlan(t, patch, file)
			} else if _, ok := err.(*ParseError); !ok {
				t.Errorf("error of ParseDiff: %v", err)
			}
		}
	})
}

// checkPlan plans and commits a patch in a tree where the first few paths that
// it names are files of that text.
func checkPlan(t *testing.T, patch *Patch, file string) {
	if confusing(Paths(patch)) {
		return
	}
	fsys := memfs.New()
	for i, name := range Paths(patch) {
		if parts, problem := elements(name); i < 3 && problem == "" {
			_ = util.WriteFile(fsys, strings.Join(parts, "/"), []byte(file), 0o644)
		}
	}
	plan, err := NewPlan(t.Context(), OnBilly(fsys), patch)
	if err != nil {
		checkRefusal(t, err)
		return
	}
	for _, c := range plan.changed {
		checkContent(t, &c)
	}
	if err := plan.Diff(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	if err := plan.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.changed {
		checkWritten(t, fsys, &c)
	}
}

// confusing says whether memfs would take one path for another: when it renames
// "a" it also moves "ab" and "ab/c".
func confusing(paths []string) bool {
	for _, short := range paths {
		for _, long := range paths {
			if rest, ok := strings.CutPrefix(long, short); ok && rest != "" && rest[0] != '/' {
				return true
			}
		}
	}
	return false
}

func checkRefusal(t *testing.T, err error) {
	_, isPath := errors.AsType[*PathError](err)
	_, isMatch := errors.AsType[*MatchError](err)
	if !isPath && !isMatch {
		t.Errorf("error of NewPlan: %v", err)
	}
	if n := len(err.Error()); n > 1<<17 {
		t.Errorf("error of %d bytes", n)
	}
}

// checkContent checks that the pieces make the text, and the differing lines
// the text from the base.
func checkContent(t *testing.T, c *change) {
	content := c.file.content
	var pieces strings.Builder
	for _, p := range content.pieces {
		if p.from < 0 {
			pieces.WriteString(p.text)
		} else {
			pieces.WriteString(content.base[p.from:p.to])
		}
	}
	if pieces.String() != content.text {
		t.Errorf("pieces make %q, not %q", pieces.String(), content.text)
	}
	var patched strings.Builder
	at, after := 0, c.file.after()
	for _, r := range c.lines {
		patched.WriteString(content.base[at:r.oldFrom])
		patched.WriteString(after[r.newFrom:r.newTo])
		at = r.oldTo
		if !atLineStart(content.base, r.oldFrom) || !atLineStart(after, r.newFrom) {
			t.Errorf("%+v of %q and %q starts within a line", r, content.base, after)
		}
	}
	patched.WriteString(content.base[at:])
	if patched.String() != after {
		t.Errorf("differing lines make %q of %q, not %q", patched.String(), content.base, after)
	}
}

func checkWritten(t *testing.T, fsys billy.Filesystem, c *change) {
	got, err := util.ReadFile(fsys, c.Path)
	switch {
	case c.Op == Delete && !errors.Is(err, fs.ErrNotExist):
		t.Errorf("%q is not deleted: %v", c.Path, err)
	case c.Op != Delete && (err != nil || string(got) != c.file.content.text):
		t.Errorf("%q is %q (%v), want %q", c.Path, got, err, c.file.content.text)
	}
}
