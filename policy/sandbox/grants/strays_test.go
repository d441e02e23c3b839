package grants

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// What leads to the workspace is told of, whatever it is called and however it leads there, and
// nothing of what stands for itself.
func TestFindsCodePointersIntoWorkspace(t *testing.T) {
	const site, bin = "home/.local/lib/python3/site-packages/", "home/.local/bin/"
	base, f := folders(t, map[string]string{"workspace/src/x.py": "", "home/host/file": "", "home/.profile": "", "outside/x": "", "caches/go/x": ""})
	replace := strings.NewReplacer("BASE", base)
	f.EarlierScratch = []string{filepath.Join(base, "setup")}
	f.Commands = []string{"GOMODCACHE=" + base + "/caches/go"}
	uppers := map[string]string{"home/": "setup/home/upper/", "caches/go/": "setup/" + cacheFolder(base+"/caches/go") + "/upper/"}
	above := func(name string) string {
		for folder, upper := range uppers {
			if inside, is := strings.CutPrefix(name, folder); is {
				return filepath.Join(base, upper, inside)
			}
		}
		return filepath.Join(base, name)
	}
	link(t, base+"/workspace", base+"/home/of-the-machine")
	for name, text := range map[string]string{
		site + "easy-install.pth": "/usr/lib/python3\nBASE/workspace/src\n", site + "up.pth": "../../../../../workspace/src",
		site + "spaced.pth": "import sys; sys.path.append('BASE/workspace/src')", site + "__editable__.a.pth": "import __editable___a_finder; __editable___a_finder.install()",
		site + "__editable___a_finder.py": "MAPPING = {'a': 'BASE/workspace/src/a'}", site + "b.egg-link": "BASE/workspace\n.", site + "through.pth": "BASE/home/of-the-machine/src",
		site + "usercustomize.py": "import sys; sys.path.insert(0, 'BASE/workspace')", "home/venv/pyvenv.cfg": "home = BASE/workspace/.venv/bin",
		bin + "shebang": "#!BASE/workspace/.venv/bin/python\n", bin + "env": "#!/usr/bin/env -S BASE/workspace/run\n", bin + "long": "#!/bin/sh\n'''exec' \"BASE/workspace/.venv/bin/python\" \"$0\"\n",
		bin + "developed": "#!/usr/bin/python3\n# EASY-INSTALL-DEV-SCRIPT: 'x'\n__file__ = 'BASE/workspace/x'\n", site + "late.pth": strings.Repeat("\n", maxFileBytes+1),
		// what stays
		site + "other.pth": "/usr/lib/python3\nBASE/workspaces/x\n./c\n", site + "virtualenv.pth": "import _virtualenv", site + "_virtualenv.py": "import os",
		bin + "copied": "#!/usr/bin/env python3\n", bin + "binary": "\x7fELF BASE/workspace/main.go", "home/.config/server.json": `{"root": "BASE/workspace"}`, site + "c/direct_url.json": `"BASE/workspace"`,
	} {
		must.Write(t, above(name), replace.Replace(text))
		if strings.HasPrefix(name, bin) {
			must.Do(t, os.Chmod(above(name), 0o755))
		}
	}
	for name, to := range map[string]string{
		bin + "linked": "BASE/workspace/x", bin + "later": "BASE/workspace/none/x", bin + "relative": "../../../workspace/x", bin + "twice": "linked", "home/folder": "BASE/workspace",
		bin + "machine": "BASE/home/of-the-machine/x", bin + "loop": "loop", bin + "below": "../../folder/x", "caches/go/linked": "BASE/workspace/x", bin + "process": "/proc/self/root/BASE/workspace/x",
		// what stays
		bin + "own": "copied", bin + "outside": "BASE/outside/x", bin + "gone": "nothing", "home/all": "BASE/outside",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(above(name)), 0o755))
		link(t, replace.Replace(to), above(name))
	}
	found := must.Get(f.CodePointers(t.Context(), []string{f.Workspace}))(t)
	var want []string
	for _, name := range []string{
		site + "easy-install.pth", site + "up.pth", site + "spaced.pth", site + "__editable__.a.pth", site + "b.egg-link", site + "through.pth", site + "usercustomize.py", site + "late.pth",
		"home/venv/pyvenv.cfg", bin + "shebang", bin + "env", bin + "long", bin + "developed",
		bin + "linked", bin + "later", bin + "relative", bin + "twice", "home/folder", bin + "machine", bin + "loop", bin + "below", "caches/go/linked", bin + "process",
	} {
		want = append(want, filepath.Join(base, name))
	}
	slices.Sort(want)
	must.Same(t, want, found)
	e := f.EarlierLayers()
	for path, leads := range map[string]bool{bin + "linked": true, "home/folder/any": true, bin + "copied": false, "home/.local": false, "home/of-the-machine/x": true, "workspace": true, "home/none": false} {
		must.Same(t, leads, e.PointsInto(filepath.Join(base, path), []string{f.Workspace}), path)
	}
	if info, err := e.Stat(filepath.Join(base, bin, "own")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("a link to a program is %v, %v", info, err)
	}
}

// What is removed is so of an overlay alone: where the user's folder itself may be written to,
// nothing of it is.
func TestRemovesOnlyOverlayPaths(t *testing.T) {
	base, f := folders(t, map[string]string{"home/x": "", "home/open/x": ""})
	f.RemovedPaths = []string{base + "/home/x", base + "/home/open/x", "/usr/bin/env"}
	for writable, want := range map[string]int{"home/open": 1, "home": 0} {
		f.Writable = []string{filepath.Join(base, writable)}
		p := must.Get(NewPlan(f))(t)
		removed := 0
		for _, m := range p.Mounts() {
			if m.Kind == "removed" {
				removed++
			}
		}
		must.Same(t, want, removed, "paths removed with", writable, "writable")
	}
}
