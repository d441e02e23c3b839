package tree_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
)

// A patch of random sections makes what the model says of a tree, or leaves it
// byte for byte as it was: when it is refused, and when the tree changes before it
// is committed.
func TestAllOrNothing(t *testing.T) {
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) { allOrNothing(t, parent) })
}

// allOrNothing compares a tree with the model of a patch that is drawn for it.
func allOrNothing(t *rapid.T, parent string) (outcome string) {
	dir, err := os.MkdirTemp(parent, "")
	must.Do(t, err)
	want := randomTree(t, dir)
	sections := rapid.SliceOfN(rapid.Custom(randomSection), 1, 6).Draw(t, "sections")
	outcome, err = attempt(t, dir, sections, want)
	if outcome == "applied" {
		for _, s := range sections {
			s.applyTo(want)
		}
	}
	must.Same(t, want.withoutEmpty(), readTree(t, dir).withoutEmpty(), outcome, err)
	return outcome
}

// attempt plans and commits sections, and now and then changes a file of the
// tree in between, of which it tells want.
func attempt(t *rapid.T, dir string, sections []section, want folder) (outcome string, err error) {
	root := must.Get(os.OpenRoot(dir))(t)
	defer root.Close()
	plan, err := tree.NewPlan(context.Background(), tree.OnRoot(root), parsed(t, written(sections)))
	if err != nil {
		return "refused", err
	}
	disturbed := rapid.IntRange(0, 3).Draw(t, "disturbed") == 0 && disturb(t, dir, plan.Changes(), want)
	err = plan.Commit(context.Background())
	if !disturbed {
		must.Do(t, err)
		return "applied", nil
	}
	if _, ok := err.(*tree.ChangedError); !ok {
		t.Fatalf("error = %v, want a ChangedError", err)
	}
	return "disturbed", err
}

// disturb writes one of the files that are to be changed.
func disturb(t *rapid.T, dir string, changes []tree.Change, want folder) bool {
	if len(changes) == 0 {
		return false
	}
	name := rapid.SampledFrom(changes).Draw(t, "disturbed file").Path
	if strings.HasPrefix(want[name], "-> ") {
		return false
	}
	folder{name: "not as it was\n"}.write(t, dir)
	want[name] = "not as it was\n"
	return true
}

var someNames = []string{"a", "b", "d/a", "d/b", "d", "e/f/g", "link", "out", "d/../b", "../x", ".git/config"}

func randomTree(t *rapid.T, dir string) folder {
	files := folder{}
	for _, name := range []string{"a", "b", "d/a", "e/f/g", ".git/config"} {
		if rapid.Bool().Draw(t, "has "+name) {
			files[name] = rapid.SampledFrom([]string{"", "x\n", "x\ny\n", "y\nx"}).Draw(t, "text")
		}
	}
	files.write(t, dir)
	for link, target := range map[string]string{"link": "a", "out": ".."} {
		must.Do(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	return readTree(t, dir)
}

// section is what a patch does to one file. An update replaces the first line
// "x" by others.
type section struct{ op, path, to string }

const (
	addedText = "x\ny\n"
	newLines  = "x\nz\n"
)

func randomSection(t *rapid.T) section {
	s := section{
		op:   rapid.SampledFrom([]string{"Add", "Delete", "Update"}).Draw(t, "operation"),
		path: rapid.SampledFrom(someNames).Draw(t, "path"),
	}
	if s.op == "Update" && rapid.Bool().Draw(t, "moves") {
		s.to = rapid.SampledFrom(someNames).Draw(t, "new path")
	}
	return s
}

func written(sections []section) string {
	var b strings.Builder
	for _, s := range sections {
		b.WriteString("*** " + s.op + " File: " + s.path + "\n")
		if s.to != "" {
			b.WriteString("*** Move to: " + s.to + "\n")
		}
		switch s.op {
		case "Add":
			b.WriteString("+x\n+y\n")
		case "Update":
			b.WriteString("@@\n-x\n+x\n+z\n")
		}
	}
	return b.String()
}

// applyTo is the model of a section that fits: files are entries of a map.
func (s section) applyTo(files folder) {
	switch {
	case s.op == "Add":
		files[files.follow(s.path)] = addedText
	case s.op == "Delete":
		delete(files, path.Clean(s.path))
	default:
		source := files.follow(s.path)
		text := updateModel(files[source])
		if s.to == "" {
			files[source] = text
			return
		}
		named, dest := path.Clean(s.to), files.follow(s.to)
		files[dest] = text
		if from := path.Clean(s.path); from != named && from != dest {
			delete(files, from)
		}
	}
}

// follow is the file that a path leads to; of the links only one leads to a file
// in the tree.
func (files folder) follow(name string) string {
	name = path.Clean(name)
	if target, ok := strings.CutPrefix(files[name], "-> "); ok {
		return target
	}
	return name
}

// updateModel ends each line and replaces the first "x".
func updateModel(text string) string {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return strings.TrimPrefix(strings.Replace("\n"+text, "\nx\n", "\n"+newLines, 1), "\n")
}
