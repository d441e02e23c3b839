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

// CodePointers returns files in home and cache folders that make programs load code from the given
// folders: links, Python's .pth files, and the first lines of scripts. It searches only the files that
// sandboxes of EarlierScratch made.
func (f Folders) CodePointers(ctx context.Context, folders []string) ([]string, error) {
	s := pointerSearch{EarlierView: f.EarlierView(), folders: withResolved(slices.Clone(folders)), found: map[string]bool{}}
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

// pointerSearch searches for CodePointers.
type pointerSearch struct {
	EarlierView
	folders []string
	found   map[string]bool // paths as commands see them
}

// lookIn searches the changes of a folder. It returns an error for an unreadable file, because commands
// of the same user could make the file readable.
func (s pointerSearch) lookIn(ctx context.Context, folder, changes string) error {
	return filepath.WalkDir(changes, func(onDisk string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(changes, onDisk)
		if err != nil {
			return err
		}
		at := filepath.Join(folder, inside)
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			s.found[at] = s.pointsInto(filepath.Dir(at), filepath.Base(at), s.folders)
		case entry.Type().IsRegular():
			s.found[at], err = s.loadsCode(at, onDisk, entry)
		}
		if !s.found[at] {
			delete(s.found, at)
		}
		return err
	})
}

// loadsCode reports whether a file makes a program load code from the folders.
func (s pointerSearch) loadsCode(at, onDisk string, entry fs.DirEntry) (bool, error) {
	switch name := entry.Name(); {
	case strings.HasSuffix(name, ".pth"), strings.HasSuffix(name, ".egg-link"):
		return s.inFile(onDisk, func(text string) bool { return s.pathFile(filepath.Dir(at), text) })
	case name == "pyvenv.cfg", name == "sitecustomize.py", name == "usercustomize.py":
		return s.inFile(onDisk, s.mentionsFolders)
	}
	info, err := entry.Info()
	if err != nil || info.Mode()&0o111 == 0 {
		return false, err
	}
	return s.script(onDisk)
}

// maxFileBytes bounds the size of a file to search, in bytes. A longer file counts as a code pointer.
const maxFileBytes = 1 << 20

// inFile reports whether leads holds for a file's text, or the file is longer than maxFileBytes.
func (s pointerSearch) inFile(onDisk string, leads func(text string) bool) (bool, error) {
	file, err := os.Open(onDisk)
	if err != nil {
		return false, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	return len(text) > maxFileBytes || leads(string(text)), err
}

// pathFile reports whether a line of a .pth file in dir leads to the folders. A line is a path relative
// to dir, or code that Python executes (docs.python.org, library/site). Code may name a folder, or
// import a module that does.
func (s pointerSearch) pathFile(dir, text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if s.pointsInto(dir, line, s.folders) || s.mentionsFolders(line) {
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
func (s pointerSearch) module(dir, name string) bool {
	for _, file := range []string{name + ".py", filepath.Join(name, "__init__.py")} {
		info, onDisk, err := s.lstat(filepath.Join(dir, file))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if found, err := s.inFile(onDisk, s.mentionsFolders); found || err != nil {
			return true
		}
	}
	return false
}

// script reports whether a program is a script that loads code from the folders, or whose interpreter is
// in them.
func (s pointerSearch) script(onDisk string) (bool, error) {
	file, err := os.Open(onDisk)
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
	lines := strings.SplitN(string(text), "\n", 3) // if the path is too long for line 1, pip puts it into line 2
	standsFor := strings.Contains(string(text), "EASY-INSTALL-DEV-SCRIPT")
	return s.mentionsFolders(strings.Join(lines[:min(2, len(lines))], "\n")) || standsFor && s.mentionsFolders(string(text)), nil
}

// mentionsFolders reports whether a text contains a path into the folders.
func (s pointerSearch) mentionsFolders(text string) bool {
	if slices.ContainsFunc(s.folders, func(folder string) bool { return containsPath(text, folder) }) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(text, aroundPaths), func(word string) bool {
		at := strings.IndexByte(word, '/')
		return at >= 0 && s.pointsInto("/", word[at:], s.folders)
	})
}

// aroundPaths reports whether a character separates paths in a text.
func aroundPaths(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune(",;:=\"'()[]{}#!", r)
}

// containsPath reports whether a text contains path or a path below it, not just a longer name.
func containsPath(text, path string) bool {
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

// ofPath reports whether a byte may belong to a name in a path.
func ofPath(c byte) bool { return !notOfName(rune(c)) || c == '.' || c == '-' || c >= 0x80 }

func notOfName(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// removeFromOverlays removes Folders.RemovedPaths from the overlays of home and cache folders. It skips
// paths on other mounts, because earlier sandboxes did not make them.
func (p *Plan) removeFromOverlays() {
	for _, path := range p.folders.RemovedPaths {
		if m, is := p.mountOf(filepath.Dir(path)); is && m.Kind == stage.Overlay && (m.Path == p.home || slices.Contains(p.caches, m.Path)) {
			maps.DeleteFunc(p.mounts, func(other string, _ stage.Mount) bool { return pathname.IsInAny(other, path) })
			p.addMount(stage.Mount{Kind: stage.Removed, Path: path})
		}
	}
}

// mountOf returns the deepest mount that contains a path.
func (p *Plan) mountOf(path string) (m stage.Mount, is bool) {
	for ; ; path = filepath.Dir(path) {
		if m, is = p.mounts[path]; is || path == "/" {
			return m, is
		}
	}
}
