package grants

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Strays lists files made by Below's sandboxes in home and cache folders that lead programs to code
// in some folders: links, Python's .pth files, and first lines of scripts. Other mechanisms are not
// known here.
func (f Folders) Strays(ctx context.Context, folders []string) ([]string, error) {
	s := strays{Earlier: f.Earlier(), folders: withReal(slices.Clone(folders)), found: map[string]bool{}}
	s.seen = map[string]bool{}
	for _, l := range s.homes {
		for _, changes := range l.changes {
			if err := s.lookIn(ctx, l.workspace, changes); err != nil {
				return nil, fmt.Errorf("look at what setup commands made below %s: %w", l.workspace, err)
			}
		}
	}
	return slices.Sorted(maps.Keys(s.found)), nil
}

type strays struct {
	Earlier
	folders []string
	found   map[string]bool // paths as commands see them
}

// lookIn looks at the changes of a folder. What can't be looked at is a mistake: commands of the
// same user could open it.
func (s strays) lookIn(ctx context.Context, folder, changes string) error {
	return filepath.WalkDir(changes, func(where string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(changes, where)
		if err != nil {
			return err
		}
		at := filepath.Join(folder, inside)
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			s.found[at] = s.leads(filepath.Dir(at), filepath.Base(at), s.folders)
		case entry.Type().IsRegular():
			s.found[at], err = s.loads(at, where, entry)
		}
		if !s.found[at] {
			delete(s.found, at)
		}
		return err
	})
}

// loads says whether a file has a program load code from the folders.
func (s strays) loads(at, where string, entry fs.DirEntry) (bool, error) {
	switch name := entry.Name(); {
	case strings.HasSuffix(name, ".pth"), strings.HasSuffix(name, ".egg-link"):
		return s.inFile(where, func(text string) bool { return s.pathFile(filepath.Dir(at), text) })
	case name == "pyvenv.cfg", name == "sitecustomize.py", name == "usercustomize.py":
		return s.inFile(where, s.names)
	}
	info, err := entry.Info()
	if err != nil || info.Mode()&0o111 == 0 {
		return false, err
	}
	return s.script(where)
}

// longest bounds a file to read, in bytes. Longer ones count as leading anywhere.
const longest = 1 << 20

func (s strays) inFile(where string, leads func(text string) bool) (bool, error) {
	file, err := os.Open(where)
	if err != nil {
		return false, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longest+1))
	return len(text) > longest || leads(string(text)), err
}

// pathFile reports whether a file's lines lead to the folders, as paths relative to its folder, or
// as executed code (docs.python.org, library/site), which may name a folder or load a module that
// does.
func (s strays) pathFile(dir, text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if s.leads(dir, line, s.folders) || s.names(line) {
			return true
		}
		code := strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t")
		if code && slices.ContainsFunc(strings.FieldsFunc(line, notOfName), func(module string) bool { return s.module(dir, module) }) {
			return true
		}
	}
	return false
}

// module reports whether a folder has a module that names the folders, as editable installs create.
func (s strays) module(dir, name string) bool {
	for _, file := range []string{name + ".py", filepath.Join(name, "__init__.py")} {
		info, where, err := s.lstat(filepath.Join(dir, file))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if found, err := s.inFile(where, s.names); found || err != nil {
			return true
		}
	}
	return false
}

// script reports whether a program is a script that, or whose interpreter, leads to the folders.
func (s strays) script(where string) (bool, error) {
	file, err := os.Open(where)
	if err != nil {
		return false, err
	}
	defer file.Close()
	read := bufio.NewReader(io.LimitReader(file, 64<<10))
	if begin, _ := read.Peek(2); !bytes.Equal(begin, []byte("#!")) {
		return false, nil
	}
	text, err := io.ReadAll(read)
	if err != nil {
		return false, err
	}
	lines := strings.SplitN(string(text), "\n", 3) // the second where the first would be too long
	standsFor := strings.Contains(string(text), "EASY-INSTALL-DEV-SCRIPT")
	return s.names(strings.Join(lines[:min(2, len(lines))], "\n")) || standsFor && s.names(string(text)), nil
}

// names reports whether a text contains a path into the folders.
func (s strays) names(text string) bool {
	if slices.ContainsFunc(s.folders, func(folder string) bool { return mentions(text, folder) }) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(text, aroundPaths), func(word string) bool {
		at := strings.IndexByte(word, '/')
		return at >= 0 && s.leads("/", word[at:], s.folders)
	})
}

func aroundPaths(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune(",;:=\"'()[]{}#!", r)
}

// mentions says whether a text has a path as a whole in it.
func mentions(text, path string) bool {
	for {
		at := strings.Index(text, path)
		if at < 0 {
			return false
		}
		before, after := text[:at], text[at+len(path):]
		if (before == "" || !ofPath(before[len(before)-1])) && (after == "" || after[0] == '/' || !ofPath(after[0])) {
			return true
		}
		text = after
	}
}

func ofPath(c byte) bool { return !notOfName(rune(c)) || c == '.' || c == '-' || c >= 0x80 }

func notOfName(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// leaveOut removes Folders.Gone from the overlays. Paths on other mounts are not Below's.
func (p *Plan) leaveOut() {
	for _, path := range p.folders.Gone {
		if m, is := p.mountOf(filepath.Dir(path)); is && m.Kind == stage.Overlay && (m.Path == p.home || slices.Contains(p.caches, m.Path)) {
			maps.DeleteFunc(p.mounts, func(other string, _ stage.Mount) bool { return pathname.Within(other, path) })
			p.put(stage.Mount{Kind: stage.Removed, Path: path})
		}
	}
}

// mountOf returns the mount of a path.
func (p *Plan) mountOf(path string) (m stage.Mount, is bool) {
	for ; ; path = filepath.Dir(path) {
		if m, is = p.mounts[path]; is || path == "/" {
			return m, is
		}
	}
}
