package v4a_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tree is the content of files by path.
type tree map[string]string

// write makes the files of a tree below dir.
func (files tree) write(t rapid.TB, dir string) {
	t.Helper()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readTree returns all files, links as "-> target" and empty directories as "/".
func readTree(t rapid.TB, dir string) tree {
	t.Helper()
	files := tree{}
	err := filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		if err != nil || full == dir {
			return err
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			entries, err := os.ReadDir(full)
			if err == nil && len(entries) == 0 {
				files[filepath.ToSlash(name)] = "/"
			}
			return err
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			files[filepath.ToSlash(name)] = "-> " + target
			return err
		case !d.Type().IsRegular():
			files[filepath.ToSlash(name)] = d.Type().String()
			return nil
		}
		text, err := os.ReadFile(full)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// apply parses, plans and commits.
func apply(t testing.TB, dir, text string) error {
	t.Helper()
	patch, err := v4a.Parse(text)
	if err != nil {
		return err
	}
	return commit(t, dir, patch)
}

func commit(t testing.TB, dir string, patch *v4a.Patch) error {
	t.Helper()
	plan, err := v4a.NewPlan(t.Context(), v4a.OnRoot(openRoot(t, dir)), patch)
	if err != nil {
		return err
	}
	return plan.Commit(t.Context())
}

// envelope wraps sections.
func envelope(sections string) string {
	return "*** Begin Patch\n" + sections + "*** End Patch\n"
}

// updated applies hunks to a file of the text and returns what it is then.
func updated(t testing.TB, text, hunks string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	tree{"f": text}.write(t, dir)
	err := apply(t, dir, envelope("*** Update File: f\n"+hunks))
	return readTree(t, dir)["f"], err
}

func TestUpdate(t *testing.T) {
	tests := map[string]struct{ text, hunks, want string }{
		"one line":                       {"a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
		"two hunks":                      {"a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n", "A\nb\nc\nD\n"},
		"first hunk without @@":          {"a\nb\n", "-a\n+A\n", "A\nb\n"},
		"empty line is empty context":    {"a\n\nb\n", "@@\n a\n\n-b\n+B\n", "a\n\nB\n"},
		"empty lines between hunks":      {"a\nb\nc\n", "@@\n-a\n+A\n\n@@\n-c\n+C\n", "A\nb\nC\n"},
		"empty line at the end of file":  {"a\nb\n", "@@\n-b\n+B\n\n", "a\nB\n"},
		"@@ with blank and nothing":      {"a\n", "@@ \n-a\n+A\n", "A\n"},
		"adds final newline":             {"a\nb", "@@\n-a\n+A\n", "A\nb\n"},
		"replaces unterminated line":     {"a\nb", "@@\n-b\n+B\n", "a\nB\n"},
		"removes unterminated line":      {"a\nb", "@@\n a\n-b\n", "a\n"},
		"removes all":                    {"a\nb\n", "@@\n-a\n-b\n", ""},
		"into an empty file":             {"", "@@\n+a\n", "a\n"},
		"pure addition at the end":       {"a\nb\n", "@@\n+c\n", "a\nb\nc\n"},
		"pure addition, unterminated":    {"a\nb", "@@\n+c\n", "a\nb\nc\n"},
		"pure addition below a context":  {"a\nb\nc\n", "@@ a\n+x\n", "a\nx\nb\nc\n"},
		"pure addition below the last":   {"a\nb", "@@ b\n+x\n", "a\nb\nx\n"},
		"pure addition at end of file":   {"a\nb\n", "@@ a\n+x\n*** End of File\n", "a\nb\nx\n"},
		"addition, then a change above":  {"a\nb\n", "@@\n+c\n@@\n-a\n+A\n", "A\nb\nc\n"},
		"keeps blank lines at the end":   {"a\n\n\n", "@@\n-a\n+A\n", "A\n\n\n"},
		"context narrows":                {"f\nx\ng\nx\n", "@@ g\n-x\n+y\n", "f\nx\ng\ny\n"},
		"contexts stack":                 {"class A\ndef f\nx\nclass B\ndef f\nx\n", "@@ class B\n@@ def f\n-x\n+y\n", "class A\ndef f\nx\nclass B\ndef f\ny\n"},
		"context is looked for loosely":  {"  def f:\nx\n", "@@ def f:\n-x\n+y\n", "  def f:\ny\n"},
		"end of file picks the last":     {"x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"},
		"cursor moves on":                {"x\nx\nx\n", "@@\n-x\n+1\n@@\n-x\n+2\n", "1\n2\nx\n"},
		"exact before loose":             {"a \na\n", "@@\n-a\n+b\n", "a \nb\n"},
		"blanks at the end":              {"a \t\nb\n", "@@\n a\n-b\n+B\n", "a \t\nB\n"},
		"blanks at both ends":            {"\t a\nb\n", "@@\n a\n-b\n+B\n", "\t a\nB\n"},
		"dashes":                         {"a – b − c\nx\n", "@@\n a - b - c\n-x\n+y\n", "a – b − c\ny\n"},
		"quotes":                         {"‘a’ “b”\nx\n", "@@\n 'a' \"b\"\n-x\n+y\n", "‘a’ “b”\ny\n"},
		"spaces":                         {"a\u00a0b\u3000c\nx\n", "@@\n a b c\n-x\n+y\n", "a\u00a0b\u3000c\ny\n"},
		"CRLF":                           {"a\r\nb\r\n", "@@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n"},
		"CR":                             {"a\rb\rc\r", "@@\n a\n-b\n+B\n c\n", "a\rB\rc\r"},
		"mixed endings":                  {"a\nb\r\nc\rd\n", "@@\n-a\n+A\n b\n c\n-d\n+D\n", "A\nb\r\nc\rD\n"},
		"CRLF of the patch is not kept":  {"a\nb\n", "@@\r\n-a\r\n+A\r\n", "A\nb\n"},
		"byte order mark stays":          {"\ufeffa\nb\n", "@@\n-a\n+A\n b\n", "\ufeffA\nb\n"},
		"byte order mark spelled":        {"\ufeffa\nb\n", "@@\n \ufeffa\n-b\n+B\n", "\ufeffa\nB\n"},
		"byte order mark replaced":       {"\ufeffa\nb\n", "@@\n-\ufeffa\n+\ufeffA\n", "\ufeffA\nb\n"},
		"byte order mark removed":        {"\ufeffa\nb\n", "@@\n-\ufeffa\n+A\n", "A\nb\n"},
		"bytes that are not text":        {"\xff\x00\nb\n", "@@\n-b\n+B\n", "\xff\x00\nB\n"},
		"header with a blank is context": {"*** Add File: x\nb\n", "@@\n *** Add File: x\n-b\n+B\n", "*** Add File: x\nB\n"},
		"empty lines after end of file":  {"a\n", "@@\n-a\n+A\n*** End of File\n\n", "A\n"},
		"empty last context not there":   {"a\n", "@@\n a\n\n+x\n", "a\n\nx\n"},
		"empty last removal not there":   {"a\n", "@@\n-a\n+A\n-\n", "A\n"},
		"empty last lines not there":     {"a\n", "@@\n-a\n-\n+b\n+\n", "b\n"},
		"one of two empty lines there":   {"a\n\n", "@@\n a\n\n-\n", "a\n"},
		"only context, empty, not there": {"a\n", "@@\n\n+x\n", "\nx\na\n"},
		"additions at the end, in order": {"a\nb\n", "@@\n+tail\n@@\n b\n+after b\n", "a\nb\ntail\nafter b\n"},
		"addition, then the last line":   {"a\nb", "@@\n+tail\n@@\n a\n-b\n+B\n", "a\nB\ntail\n"},
		"byte order mark in a context":   {"\ufeffa\nb\n", "@@ \ufeffa\n-b\n+B\n", "\ufeffa\nB\n"},
		"byte order mark not in one":     {"\ufeffa\nb\n", "@@ a\n-b\n+B\n", "\ufeffa\nB\n"},
		"blanks after end of file":       {"a\n", "@@\n-a\n+A\n*** End of File\n  \n\t\n", "A\n"},
		"end of file above all hunks":    {"a\nb\n", "*** End of File\n@@\n-a\n+A\n", "A\nb\n"},
		"nothing changes":                {"a\nb\n", "@@\n a\n b\n", "a\nb\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := updated(t, tt.text, tt.hunks)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdateRefused(t *testing.T) {
	tests := map[string]struct{ text, hunks string }{
		"no such line":                 {"a\nb\n", "@@\n-c\n+C\n"},
		"no such context":              {"a\nb\n", "@@ c\n-b\n+C\n"},
		"context is part of a line":    {"def f():\nb\n", "@@ def f\n-b\n+C\n"},
		"line numbers":                 {"a\nb\n", "@@ -1,2 +1,2 @@\n-b\n+C\n"},
		"hunks out of order":           {"a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A\n"},
		"not at the end of file":       {"a\nb\nc\n", "@@\n-a\n+A\n*** End of File\n"},
		"old lines longer than file":   {"a\n", "@@\n a\n b\n-c\n"},
		"folding does not touch bytes": {"\xff–\nb\n", "@@\n \xff-\n-b\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := updated(t, tt.text, tt.hunks)
			if _, ok := err.(*v4a.MatchError); !ok {
				t.Errorf("error = %v, want a MatchError", err)
			}
			if got != tt.text {
				t.Errorf("file is now %q", got)
			}
		})
	}
}

// patches are patches of whole sections and what becomes of a tree by them.
var patches = map[string]struct {
	before   tree
	sections string
	want     tree
	summary  string
}{
	"add": {
		sections: "*** Add File: d/e/f\n+a\n+\n+b\n",
		want:     tree{"d/e/f": "a\n\nb\n"}, summary: "A d/e/f\n",
	},
	"add an empty file": {
		sections: "*** Add File: f\n", want: tree{"f": ""}, summary: "A f\n",
	},
	"add over a file": {
		before: tree{"f": "old\n"}, sections: "*** Add File: f\n+new\n",
		want: tree{"f": "new\n"}, summary: "A f\n",
	},
	"delete": {
		before: tree{"d/f": "x\n", "g": "y\n"}, sections: "*** Delete File: d/f\n",
		want: tree{"d": "/", "g": "y\n"}, summary: "D d/f\n",
	},
	"all kinds, summary by kind": {
		before:   tree{"u": "x\n", "d": "y\n"},
		sections: "*** Delete File: d\n*** Update File: u\n@@\n-x\n+z\n*** Add File: a\n+a\n",
		want:     tree{"u": "z\n", "a": "a\n"}, summary: "A a\nM u\nD d\n",
	},
	"move": {
		before:   tree{"a": "x\ny\n"},
		sections: "*** Update File: a\n*** Move to: d/b\n@@\n-x\n+z\n",
		want:     tree{"d/b": "z\ny\n"}, summary: "M d/b\n",
	},
	"move over a file": {
		before:   tree{"a": "x\n", "b": "y\n"},
		sections: "*** Update File: a\n*** Move to: b\n@@\n x\n",
		want:     tree{"b": "x\n"}, summary: "M b\n",
	},
	"move onto itself": {
		before:   tree{"a": "x\n"},
		sections: "*** Update File: a\n*** Move to: ./a\n@@\n-x\n+y\n",
		want:     tree{"a": "y\n"}, summary: "M ./a\n",
	},
	"sections for one file apply in order": {
		before:   tree{"a": "x\ny\n"},
		sections: "*** Update File: a\n@@\n-y\n+z\n*** Update File: a\n@@\n-x\n+w\n z\n",
		want:     tree{"a": "w\nz\n"}, summary: "M a\nM a\n",
	},
	"add and update": {
		sections: "*** Add File: a\n+x\n*** Update File: a\n@@\n-x\n+y\n",
		want:     tree{"a": "y\n"}, summary: "A a\nM a\n",
	},
	"delete and add": {
		before:   tree{"a": "x\n"},
		sections: "*** Delete File: a\n*** Add File: a\n+y\n",
		want:     tree{"a": "y\n"}, summary: "A a\nD a\n",
	},
	"swap by moves": {
		before:   tree{"a": "a\n", "b": "b\n"},
		sections: "*** Update File: a\n*** Move to: t\n@@\n a\n*** Update File: b\n*** Move to: a\n@@\n b\n*** Update File: t\n*** Move to: b\n@@\n a\n",
		want:     tree{"a": "b\n", "b": "a\n"}, summary: "M t\nM a\nM b\n",
	},
	"move, then a new file in its place": {
		before:   tree{"a": "a\n"},
		sections: "*** Update File: a\n*** Move to: b\n@@\n a\n*** Add File: a\n+new\n",
		want:     tree{"a": "new\n", "b": "a\n"}, summary: "A a\nM b\n",
	},
	"add and delete": {
		before:   tree{"x": "x\n"},
		sections: "*** Add File: a\n+x\n*** Delete File: a\n",
		want:     tree{"x": "x\n"}, summary: "A a\nD a\n",
	},
	"names with blanks": {
		sections: "*** Add File:   a b  \n+x\n",
		want:     tree{"  a b": "x\n"}, summary: "A   a b\n",
	},
	"padded markers": {
		before:   tree{"a": "x\n"},
		sections: "  *** Add File: n\n+x\n  *** Delete File: a  \n \t*** Add File: m\n+y\n",
		want:     tree{"n": "x\n", "m": "y\n"}, summary: "A n\nA m\nD a\n",
	},
	"dots in a path": {
		before:   tree{"d/a": "x\n"},
		sections: "*** Update File: ./d/../d//a\n@@\n-x\n+y\n",
		want:     tree{"d/a": "y\n"}, summary: "M ./d/../d//a\n",
	},
}

func TestPatches(t *testing.T) {
	for name, tt := range patches {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tt.before.write(t, dir)
			patch, err := v4a.Parse(envelope(tt.sections))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := v4a.NewPlan(t.Context(), v4a.OnRoot(openRoot(t, dir)), patch)
			if err != nil {
				t.Fatal(err)
			}
			if err := plan.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, readTree(t, dir)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff("Success. Updated the following files:\n"+tt.summary, plan.Summary()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	tree{"script": "a\n", "moved": "b\n", "replaced": "c\n"}.write(t, dir)
	const rights = fs.ModeSetuid | fs.ModeSetgid // of whoever owns the file: what is new in it does not get them
	for name, mode := range map[string]fs.FileMode{"script": rights | 0o755, "moved": rights | 0o750, "replaced": rights | 0o600} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	err := apply(t, dir, envelope(strings.Join([]string{
		"*** Update File: script", "@@", "-a", "+A",
		"*** Update File: moved", "*** Move to: there", "@@", " b",
		"*** Add File: replaced", "+C", "",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"script": 0o755, "there": 0o750, "replaced": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}
