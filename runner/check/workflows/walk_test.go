package workflows

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agent-ci/agent-ci/policy/must"
)

// memoryTree is a Tree of files and links by their paths.
type memoryTree struct{ files, links map[string]string }

func (m memoryTree) Read(name string) ([]byte, error) {
	text, is := m.files[name]
	if !is {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (m memoryTree) Link(name string) (string, error) { return m.links[name], nil }

func (m memoryTree) List(folder string) (names []string, err error) {
	for name := range m.files {
		if path.Dir(name) == folder {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

// TestWalk runs the walk on workflows: a file named now:PATH is of the change, link:PATH is a link.
func TestWalk(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 30 {
		t.Fatalf("%d workflows, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive := must.Get(txtar.ParseFile(name))(t)
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
			c.Base, c.Pushed = memoryTree{base, links}, memoryTree{now, links}
			found := must.Get(Find(c))(t)
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
			must.Same(t, want, got, found)
		})
	}
}

// TestFollowsHugeMakefilesOnce has makefiles of the largest size with many unknown targets, many targets that share
// prerequisites, and long values: each must be followed in steps, and with memory, that grow with its size alone.
func TestFollowsHugeMakefilesOnce(t *testing.T) {
	const workflow = "name: CI\non: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - run: make all\n"
	words := func(prefix string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " %s%d", prefix, i)
		}
		return b.String()
	}
	for name, makefile := range map[string]string{
		"unknown targets":      "all:" + words("u", 15000) + "\n" + strings.ReplaceAll(words("r", 15000)[1:], " ", ":\n") + ":\n",
		"shared prerequisites": "all: a0\n" + words("a", 15000)[1:] + ":" + words("a", 15000) + "\n\techo\n",
		"shared recipes":       "all: a0\n" + words("a", 15000)[1:] + ":\n" + strings.Repeat("\techo x\n", 15000),
		"long values":          "all: a0\nV =" + words("a", 9000) + "\n" + strings.Repeat("a0: $(V)\n", 15000),
	} {
		t.Run(name, func(t *testing.T) {
			before := new(runtime.MemStats)
			runtime.ReadMemStats(before)
			files := map[string]string{".github/workflows/ci.yml": workflow, "Makefile": makefile + "\nlast:\n"}
			must.Get(Find(Change{Branch: "agent-ci/task-1", BaseBranch: "main", Paths: []string{"x"}, Base: memoryTree{files, nil}, Pushed: memoryTree{files, nil}}))(t)
			after := new(runtime.MemStats)
			runtime.ReadMemStats(after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 2000*uint64(len(makefile)) {
				t.Errorf("a makefile of %d bytes took %d", len(makefile), took)
			}
		})
	}
}
