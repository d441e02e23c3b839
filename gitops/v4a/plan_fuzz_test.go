package v4a

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
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
// it names are files of that text: in memory, and now and then, since that takes
// its time, on disk.
func checkPlan(t *testing.T, patch *Patch, file string) {
	if !confusing(Paths(patch)) {
		fsys := memfs.New()
		checkPlanIn(t, fsys, OnBilly(fsys), patch, file)
	}
	if len(file)%16 != 3 {
		return
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	checkPlanIn(t, osfs.New(dir, osfs.WithBoundOS()), OnRoot(root), patch, file)
}

func checkPlanIn(t *testing.T, fsys billy.Filesystem, tree Dir, patch *Patch, file string) {
	for i, name := range Paths(patch) {
		if parts, problem := elements(name); i < 3 && problem == "" {
			_ = util.WriteFile(fsys, strings.Join(parts, "/"), []byte(file), 0o644)
		}
	}
	plan, err := NewPlan(t.Context(), tree, patch)
	if err != nil {
		checkRefusal(t, err)
		return
	}
	for _, c := range plan.changed {
		checkContent(t, &c)
		checkSize(t, &c, patch)
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

// checkSize checks that what a plan holds grows with the file and the patch and
// no faster: sections can only add what they say, with an ending for each line.
func checkSize(t *testing.T, c *change, patch *Patch) {
	said, lines := 0, 1
	for _, s := range patch.Sections {
		said += 2*len(s.Content) + 2
		lines += 2
		for _, h := range s.Hunks {
			for _, l := range h.Lines {
				said += len(l.Text) + 2
				lines += 2
			}
		}
	}
	origin := len(c.file.content.base)
	if c.file.from == nil {
		origin = max(origin, 1<<16) // what another file had, which moved here
	}
	if n := len(c.file.content.text); n > origin+said {
		t.Errorf("%q has %d bytes, from %d and a patch of %d", c.Path, n, origin, said)
	}
	if n := len(c.file.content.pieces); n > 2*lines {
		t.Errorf("%q has %d pieces, from %d lines of a patch", c.Path, n, lines)
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
