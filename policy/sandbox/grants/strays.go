package grants

import (
	"bufio"
	"bytes"
	"cmp"
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
	s := pointerSearch{Layers: f.EarlierLayers().withCache(), folders: withResolved(slices.Clone(folders)), found: map[string]bool{}}
	for _, o := range s.overlays {
		for _, changes := range o.changes {
			if err := s.searchChanges(ctx, o.folder, changes); err != nil {
				return nil, fmt.Errorf("look at what setup commands made below %s: %w", o.folder, err)
			}
		}
	}
	return slices.Sorted(maps.Keys(s.found)), nil
}

// pointerSearch searches for CodePointers.
type pointerSearch struct {
	Layers
	folders []string
	found   map[string]bool // paths as commands see them
}

// searchChanges searches the changes of a folder and adds the results to s.found. It returns an error for an unreadable file, because commands
// of the same user could make the file readable.
func (s pointerSearch) searchChanges(ctx context.Context, folder, changes string) error {
	return filepath.WalkDir(changes, func(onDisk string, entry fs.DirEntry, err error) error {
		if err := cmp.Or(err, ctx.Err()); err != nil {
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
		if !s.found[at] { // the keys are the result
			delete(s.found, at)
		}
		return err
	})
}

// loadsCode reports whether a file makes a program load code from the folders. at is the path that commands see,
// and onDisk the place of the content.
func (s pointerSearch) loadsCode(at, onDisk string, entry fs.DirEntry) (bool, error) {
	switch name := entry.Name(); {
	case strings.HasSuffix(name, ".pth"), strings.HasSuffix(name, ".egg-link"):
		return s.fileMatches(onDisk, func(text string) bool { return s.pthFileLoads(filepath.Dir(at), text) })
	case name == "pyvenv.cfg", name == "sitecustomize.py", name == "usercustomize.py":
		return s.fileMatches(onDisk, s.mentionsFolders)
	}
	info, err := entry.Info()
	if err != nil {
		return false, err
	}
	if isExecutable := info.Mode()&0o111 != 0; !isExecutable {
		return false, nil
	}
	return s.scriptLoads(onDisk)
}

// maxFileBytes bounds the size of a file to search, in bytes. A longer file counts as a code pointer.
const maxFileBytes = 1 << 20

// fileMatches reports whether matches holds for a file's text, or the file is longer than maxFileBytes.
func (s pointerSearch) fileMatches(onDisk string, matches func(text string) bool) (bool, error) {
	file, err := os.Open(onDisk)
	if err != nil {
		return false, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	return len(text) > maxFileBytes || matches(string(text)), err
}

// pthFileLoads reports whether a line of a .pth file in dir leads to the folders. A line is a path relative
// to dir, or code that Python executes (docs.python.org, library/site). Code may name a folder, or
// import a module that does.
func (s pointerSearch) pthFileLoads(dir, text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if s.pointsInto(dir, line, s.folders) || s.mentionsFolders(line) {
			return true
		}
		if !strings.HasPrefix(line, "import ") && !strings.HasPrefix(line, "import\t") {
			continue
		}
		for _, module := range strings.FieldsFunc(line, isOutsideName) {
			if s.moduleMentionsFolders(dir, module) {
				return true
			}
		}
	}
	return false
}

// moduleMentionsFolders reports whether a folder has a module that names the folders, as editable installs create.
// A module that cannot be searched counts as one.
func (s pointerSearch) moduleMentionsFolders(dir, name string) bool {
	for _, file := range []string{name + ".py", filepath.Join(name, "__init__.py")} {
		info, onDisk, err := s.lstat(filepath.Join(dir, file))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if found, err := s.fileMatches(onDisk, s.mentionsFolders); found || err != nil {
			return true
		}
	}
	return false
}

// scriptLoads reports whether a program is a script that loads code from the folders, or whose interpreter is
// in them.
func (s pointerSearch) scriptLoads(onDisk string) (bool, error) {
	file, err := os.Open(onDisk)
	if err != nil {
		return false, err
	}
	defer file.Close()
	reader := bufio.NewReader(io.LimitReader(file, 64<<10))
	if begin, _ := reader.Peek(2); !bytes.Equal(begin, []byte("#!")) {
		return false, nil
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return false, err
	}
	if strings.Contains(string(text), "EASY-INSTALL-DEV-SCRIPT") {
		return s.mentionsFolders(string(text)), nil
	}
	lines := strings.SplitN(string(text), "\n", 3) // if the path is too long for line 1, pip puts it into line 2
	return s.mentionsFolders(strings.Join(lines[:min(2, len(lines))], "\n")), nil
}

// mentionsFolders reports whether a text contains a path into the folders.
func (s pointerSearch) mentionsFolders(text string) bool {
	if slices.ContainsFunc(s.folders, func(folder string) bool { return containsPath(text, folder) }) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(text, endsPath), func(word string) bool {
		at := strings.IndexByte(word, '/')
		return at >= 0 && s.pointsInto("/", word[at:], s.folders)
	})
}

// endsPath reports whether a character ends a path in a text.
func endsPath(r rune) bool {
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
		begins := before == "" || !isPathByte(before[len(before)-1])
		ends := after == "" || after[0] == '/' || !isPathByte(after[0])
		if begins && ends {
			return true
		}
		text = after
	}
}

// isPathByte reports whether a byte may belong to a name in a path.
func isPathByte(c byte) bool { return !isOutsideName(rune(c)) || c == '.' || c == '-' || c >= 0x80 }

func isOutsideName(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// removeFromOverlays removes Folders.RemovedPaths from the overlays of home and cache folders. It skips
// paths on other mounts, because earlier sandboxes did not make them.
func (p *Plan) removeFromOverlays() {
	for _, path := range p.folders.RemovedPaths {
		m, mounted := p.mountContaining(filepath.Dir(path))
		isPrivate := m.Path == p.home || slices.Contains(p.caches, m.Path)
		if mounted && m.Kind == stage.Overlay && isPrivate {
			maps.DeleteFunc(p.mounts, func(other string, _ stage.Mount) bool { return pathname.IsInAny(other, path) })
			p.addMount(stage.Mount{Kind: stage.Removed, Path: path})
		}
	}
}

// mountContaining returns the deepest mount that contains a path.
func (p *Plan) mountContaining(path string) (m stage.Mount, is bool) {
	for ; ; path = filepath.Dir(path) {
		if m, is = p.mounts[path]; is || path == "/" {
			return m, is
		}
	}
}
