package grants

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// planOf is the plan of folders whose commands have these variables. BASE in them is
// the folder that all lie in.
func planOf(t *testing.T, base string, f Folders, commands ...string) *Plan {
	t.Helper()
	for _, variable := range commands {
		f.Commands = append(f.Commands, strings.ReplaceAll(variable, "BASE", base))
	}
	p := must.Get(NewPlan(f))(t)
	return p
}

func TestMountsCacheFoldersAsOverlays(t *testing.T) {
	base, f := folders(t, map[string]string{
		"go/pkg/mod/a": "x", "go/src/b": "x", "second/pkg/c": "x", "cargo/file": "x", "home/cache/d": "x", "workspace/cache/e": "x", "workspace/file": "x",
		"extra/cache/f": "x", "denied/cache/g": "x", "around/extra/h": "x", "home/.ssh/key": "x", "file": "x",
	})
	link(t, "cargo", filepath.Join(base, "link"))
	link(t, "../cargo", filepath.Join(f.Workspace, "link"))
	link(t, "workspace/link", filepath.Join(base, "twice"))
	f.Writable, f.DenyRead = []string{filepath.Join(base, "extra"), filepath.Join(base, "around/extra")}, []string{filepath.Join(base, "denied")}
	for _, c := range []struct {
		name, variable string
		want           []string // below the base
	}{
		{"none", "PATH=BASE/go", nil},
		{"one", "GOCACHE=BASE/cargo", []string{"cargo"}},
		{"a list", "GOPATH=BASE/go:BASE/second", []string{"go", "second"}},
		{"one that lists nothing", "GOCACHE=BASE/go:BASE/second", nil},
		{"a link", "CARGO_HOME=BASE/link", []string{"cargo"}},
		{"in the user's folder", "GOCACHE=BASE/home/cache", nil},
		{"in the checkout", "GOCACHE=BASE/workspace/cache", nil},
		{"a link in the checkout", "GOCACHE=BASE/workspace/link", nil},
		{"a link by way of the checkout", "GOCACHE=BASE/twice", nil},
		{"in a folder that is written to", "GOCACHE=BASE/extra/cache", nil},
		{"around a folder that is written to", "GOCACHE=BASE/around", []string{"around"}},
		{"hidden", "GOCACHE=BASE/denied/cache", nil},
		{"of credentials", "GOCACHE=BASE/home/.ssh", nil},
		{"a file", "GOCACHE=BASE/file", nil},
		{"not there", "GOCACHE=BASE/missing", nil},
		{"relative", "GOCACHE=go", nil},
		{"off", "GOCACHE=off", nil},
		{"everything", "GOCACHE=/", nil},
		{"temporary files", "GOCACHE=/tmp", nil},
		{"the kernel's", "GOCACHE=/proc/self", nil},
		{"the machine's", "GOCACHE=/run", nil},
		{"above the checkout", "GOCACHE=BASE", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, base, f, c.variable)
			var got []string
			for _, m := range p.Mounts() {
				if inside, is := pathname.Below(base, m.Path); is && m.Kind == stage.Overlay && m.Path != f.Home {
					got = append(got, inside)
					must.Same(t, true, slices.Contains(p.folders.WritableInNamespaces(), m.Path), m.Path, "is not among what commands may write to")
				}
			}
			must.Same(t, c.want, got)
		})
	}
}

// A GOPATH may have the checkout in it, and XDG_CACHE_HOME the cache of Go.
func TestReducesOverlappingCaches(t *testing.T) {
	base, f := folders(t, map[string]string{"go/pkg/mod/a": "x", "go/src/project/file": "x", "cache/go-build/b": "x"})
	f.Workspace = filepath.Join(base, "go/src/project")
	p := planOf(t, base, f, "GOPATH=BASE/go", "GOCACHE=BASE/cache/go-build", "XDG_CACHE_HOME=BASE/cache", "GOMODCACHE=BASE/go/pkg/mod")
	must.Same(t, []string{filepath.Join(base, "cache"), filepath.Join(base, "go/pkg")}, p.caches)
	f.Workspace, f.SecondPath = filepath.Join(base, "cache/run/tree"), f.Workspace // a tree of a check, in the place of the checkout
	must.Write(t, filepath.Join(f.Workspace, "file"), "x")
	p = planOf(t, base, f, "GOPATH=BASE/go", "XDG_CACHE_HOME=BASE/cache")
	must.Same(t, []string{filepath.Join(base, "cache"), filepath.Join(base, "go/pkg")}, p.caches)
}

func TestCacheOverlaysIncludeEarlierChanges(t *testing.T) {
	base, f := folders(t, map[string]string{"cache/a": "x", "cache/secret": "x"})
	cache := filepath.Join(base, "cache")
	f.DenyRead = []string{filepath.Join(cache, "secret")}
	f.EarlierScratch = []string{filepath.Join(base, "first"), filepath.Join(base, "missing")}
	kept := cacheFolder(cache)
	must.Write(t, filepath.Join(base, "first", kept, "upper/a"), "x")
	f.Commands = []string{"GOCACHE=" + cache}
	mounts := mountsOf(t, f)
	want := stage.Mount{Kind: stage.Overlay, Path: cache, Source: filepath.Join(f.Scratch, kept), Frozen: []string{filepath.Join(base, "first", kept)}, Optional: true}
	must.Same(t, want, mounts[cache])
	wantKinds(t, mounts, map[string]stage.MountKind{f.DenyRead[0]: stage.Hidden})
	for _, folder := range []string{"upper", "work"} {
		must.Same(t, true, isFolder(filepath.Join(f.Scratch, kept, folder)), "there is no folder", folder, "for changes")
	}
}

func TestViewShowsCacheLayers(t *testing.T) {
	base, f := folders(t, map[string]string{"cache/a": "outside", "cache/b": "outside", "cache/c": "outside", "cache/secret": "x"})
	kept := cacheFolder(filepath.Join(base, "cache"))
	must.Write(t, filepath.Join(base, "first", kept, "upper/b"), "setup")
	must.Write(t, filepath.Join(base, "first", kept, "upper/c"), "setup")
	must.Write(t, filepath.Join(f.Scratch, kept, "upper/c"), "own")
	f.EarlierScratch, f.DenyRead = []string{filepath.Join(base, "first")}, []string{filepath.Join(base, "cache/secret")}
	in := func(name string) string { return filepath.Join(base, "cache", name) }
	p := planOf(t, base, f, "GOCACHE=BASE/cache")
	wantShown(t, p.View(), map[string]string{in("a"): "outside", in("b"): "setup", in("c"): "own", in("secret"): hiddenWords})
	wantShown(t, p.LandlockView(), map[string]string{in("a"): "outside", in("c"): "outside", in("secret"): hiddenWords})
}

func TestLandlockGrantsReadingCaches(t *testing.T) {
	base, f := folders(t, map[string]string{"cache/a": "x", "cache/secret": "x", "other/b": "x"})
	f.DenyRead = []string{filepath.Join(base, "cache/secret")}
	p := planOf(t, base, f, "GOMODCACHE=BASE/cache", "GOPATH=BASE/other")
	l := must.Get(p.Landlock())(t)
	for path, want := range map[string]bool{"cache": false, "cache/a": true, "cache/secret": false, "other": true} {
		must.Same(t, want, slices.Contains(l.Read, filepath.Join(base, path)), path)
		must.Same(t, false, slices.Contains(l.Write, filepath.Join(base, path)), path, "may be written")
	}
}

// What is not there lies below the caches of the user; what can't be changed is moved
// if it can be done without, and what the operator set stays.
func TestMovesUnusableCaches(t *testing.T) {
	base, f := folders(t, map[string]string{"there/a": "x"})
	f.OperatorVariables = []string{"DENO_DIR", "TMPDIR"} // the second is not the operator's to set
	p := planOf(t, base, f, "GOCACHE=BASE/there", "GOMODCACHE=BASE/missing", "UV_CACHE_DIR=BASE/missing", "DENO_DIR=BASE/missing", "CARGO_HOME=BASE/there", "GOPATH=BASE/missing:BASE/there", "PNPM_HOME=BASE/missing")
	all := func(string) bool { return true }
	homes := func(path string) bool { return path == f.Home }
	in := func(name string) string { return filepath.Join(f.Home, ".cache", name) }
	temporary := temporaryVariables("/tmp")
	for _, c := range []struct {
		name    string
		changes func(string) bool
		want    []string
	}{
		{"all can be changed", all, []string{"GOMODCACHE=" + in("go-mod"), "UV_CACHE_DIR=" + in("uv")}},
		{"the user's folder can", homes, []string{"GOCACHE=" + in("go-build"), "GOMODCACHE=" + in("go-mod"), "UV_CACHE_DIR=" + in("uv")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Same(t, append(temporary, c.want...), p.Variables(c.changes))
		})
	}
	none := p.Variables(func(string) bool { return false })
	for variable, want := range map[string]bool{"GOCACHE=/tmp/.cache/go-build": true, "GOMODCACHE=/tmp/.cache/go-mod": true, "XDG_CACHE_HOME=/tmp/.cache": true, "CARGO_HOME=/tmp/.cache/cargo": false, "DENO_DIR=/tmp/.cache/deno": false} {
		must.Same(t, want, slices.Contains(none, variable), variable, "in", none)
	}
}

// documented returns a section of the reference on policy.
func documented(t *testing.T, heading string) string {
	t.Helper()
	raw := must.Get(os.ReadFile("../../../docs/reference/policy.md"))(t)
	_, section, found := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("there is no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// The table of the documents is that of the code.
func TestCachesAreDocumented(t *testing.T) {
	section := documented(t, "Folders of caches")
	var rows, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
		rows = append(rows, strings.Join(row[1:], ": "))
	}
	for _, v := range cacheVariables {
		what := "a folder"
		if v.isList {
			what = "a list of folders"
		}
		if len(v.parts) > 0 {
			what += "; `" + strings.Join(v.parts, "`, `") + "` in one around the checkout or a mount"
		}
		moved := map[bool]string{true: "missing", false: ""}[v.fallback != ""]
		if v.replaceable {
			moved += " or read-only"
		}
		want = append(want, strings.Join([]string{v.name, what, moved}, ": "))
	}
	must.Same(t, want, rows)
}

func TestCredentialsAreDocumented(t *testing.T) {
	_, section, _ := strings.Cut(documented(t, "Files that commands can't read"), "|---|---|\n")
	section, _, _ = strings.Cut(section, "\n\n")
	var listed []string
	for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, name[1])
	}
	var want []string
	for _, name := range homeCredentialPaths {
		want = append(want, "~/"+name)
	}
	want = slices.Concat(want, machineCredentialPaths, credentialPatterns, []string{"$RUNNER_TEMP"}, runnerCredentials, credentialVariables)
	must.Same(t, want, listed)
}
