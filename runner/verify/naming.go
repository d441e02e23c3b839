package verify

import (
	"context"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
)

// naming finds out which of some test files a failing test is of, as the output of a check
// names it. A name that fits more than one file is nobody's.
type naming struct {
	checkout *gitops.Checkout
	files    []testFile
	tests    []finder          // of the files
	modules  map[string]string // of Go, by folder
	alone    map[string]bool   // ends of paths, by whether one file of the repository has it
	owners   map[Failure]int   // indexes of files, of failures that were looked for
}

func newNaming(checkout *gitops.Checkout, files []testFile) *naming {
	tests := make([]finder, len(files))
	for i, f := range files {
		tests[i] = f.finder()
	}
	return &naming{checkout, files, tests, map[string]string{}, map[string]bool{}, map[Failure]int{}}
}

// of gives the files that a failure is of: one, or those of a folder that do not compile
// together. shared says that it is another one of the folder that is named.
func (n *naming) of(ctx context.Context, x Failure, f testFile) (is, shared bool, err error) {
	at, err := n.owner(ctx, x)
	if err != nil || at < 0 {
		return false, false, err
	}
	named := n.files[at].path
	return named == f.path || x.Load && samePackage(named, f.path), named != f.path, nil
}

// owner is the index of the file that a failure names; -1 for none.
func (n *naming) owner(ctx context.Context, x Failure) (at int, err error) {
	if at, known := n.owners[x]; known {
		return at, nil
	}
	if ctx.Err() != nil { // outputs name as many tests as they like
		return -1, context.Cause(ctx)
	}
	if x.File != "" {
		at, err = n.byPath(ctx, x)
	} else {
		at = n.byName(x)
	}
	if err == nil {
		n.owners[x] = at
	}
	return at, err
}

// byPath is the index of the file that a path of an output names; -1 for none.
func (n *naming) byPath(ctx context.Context, x Failure) (int, error) {
	found, longest := -1, 0
	for i, f := range n.files {
		switch {
		case f.path == x.File:
			return i, nil
		case filepath.IsAbs(x.File) && strings.HasSuffix(x.File, "/"+f.path):
			if len(f.path) > longest {
				found, longest = i, len(f.path)
			}
		case !strings.HasSuffix(f.path, "/"+x.File):
		case x.Package != "" && n.packageOf(f) != "":
			if x.Package == n.packageOf(f) {
				return i, nil
			}
		default:
			if is, err := n.only(ctx, x.File, f.path); err != nil || is {
				return i, err
			}
		}
	}
	return found, nil
}

// only says whether no other file of the base or of the change has the end of a path:
// an output tells paths from where a tool was started.
func (n *naming) only(ctx context.Context, end, of string) (bool, error) {
	if is, known := n.alone[end]; known {
		return is, nil
	}
	others, err := n.checkout.Ending(ctx, end)
	if err != nil {
		return false, err
	}
	for _, f := range n.files {
		if f.path == end || strings.HasSuffix(f.path, "/"+end) {
			others = append(others, f.path)
		}
	}
	n.alone[end] = true
	for _, other := range others {
		n.alone[end] = n.alone[end] && other == of
	}
	return n.alone[end], nil
}

// byName is the index of the one file that has a test of that name; -1 for none or more.
func (n *naming) byName(x Failure) int {
	found := -1
	for i, f := range n.files {
		if _, has := n.tests[i].find(x.Name); !has || x.Package != "" && n.packageOf(f) != x.Package {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// packageOf is the path of import of a file's package of Go; empty where no module is known.
func (n *naming) packageOf(f testFile) string {
	folder := path.Dir(f.path)
	for dir := folder; ; dir = path.Dir(dir) {
		if module := n.module(dir); module != "" {
			return path.Join(module, strings.TrimPrefix(folder, dir))
		}
		if dir == "." {
			return ""
		}
	}
}

var moduleLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^module[ \t]+"?([^\s"]+)`) })

// module is the module of Go that a folder of the base is the root of; empty for none, and
// where what says so can't be read.
func (n *naming) module(dir string) string {
	if name, known := n.modules[dir]; known {
		return name
	}
	n.modules[dir] = ""
	const most = 1 << 20
	if raw, err := n.checkout.ReadBase(path.Join(dir, "go.mod"), most); err == nil {
		if m := moduleLine().FindSubmatch(raw); m != nil {
			n.modules[dir] = string(m[1])
		}
	}
	return n.modules[dir]
}

// samePackage says whether two files of Go stand or fall together: those of a folder
// are compiled as one.
func samePackage(a, b string) bool {
	return strings.HasSuffix(a, ".go") && strings.HasSuffix(b, ".go") && path.Dir(a) == path.Dir(b)
}
