package workflows

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// treeOf is a tree of the files of an archive; a link's content is its target.
func treeOf(files, links map[string]string) Tree {
	return Tree{
		Read: func(name string) ([]byte, error) {
			text, is := files[name]
			if !is {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		},
		Link: func(name string) (string, error) { return links[name], nil },
		List: func(folder string) (names []string, err error) {
			for name := range files {
				if path.Dir(name) == folder {
					names = append(names, path.Base(name))
				}
			}
			return names, nil
		},
	}
}

// TestWalk runs the walk on workflows: a file named now:PATH is of the change, link:PATH is a link.
func TestWalk(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 30 {
		t.Fatalf("%d workflows, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			c := Change{Branch: "agent-ci/task-1", BaseBranch: "main"}
			for line := range strings.Lines(string(archive.Comment)) {
				if text, is := strings.CutPrefix(strings.TrimSpace(line), "want: "); is {
					want = append(want, text)
				}
			}
			base, now, links := map[string]string{}, map[string]string{}, map[string]string{}
			for _, f := range archive.Files {
				text := strings.TrimSuffix(string(f.Data), "\n")
				if p, is := strings.CutPrefix(f.Name, "now:"); is {
					now[p] = text
					c.Paths = append(c.Paths, p)
				} else if p, is := strings.CutPrefix(f.Name, "link:"); is {
					links[p] = text
				} else {
					base[f.Name], now[f.Name] = text, text
				}
			}
			c.Base, c.Now = treeOf(base, links), treeOf(now, links)
			found, err := Find(c)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range found {
				parts := []string{path.Base(s.Workflow)}
				if s.Job != "" {
					parts = append(parts, s.Job)
				}
				if s.Unknown != "" {
					parts = append(parts, "unknown")
				}
				for _, list := range []struct {
					name string
					of   []string
				}{{"secrets", s.Secrets}, {"writes", s.Writes}} {
					if len(list.of) > 0 {
						joined := strings.NewReplacer(": ", ":", " ", ":").Replace(strings.Join(list.of, ","))
						parts = append(parts, list.name+"="+joined)
					}
				}
				if s.DefaultRights {
					parts = append(parts, "default")
				}
				var files []string
				for _, f := range s.Files {
					files = append(files, f.Path)
					if f.Via == "" {
						t.Errorf("nothing says what starts %s", f.Path)
					}
				}
				if len(files) > 0 {
					slices.Sort(files)
					parts = append(parts, "files="+strings.Join(files, ","))
				}
				got = append(got, strings.Join(parts, " "))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, found)
			}
		})
	}
}
