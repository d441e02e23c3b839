package repository

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Layout holds the places of a checkout's parts. A linked work tree has HEAD and index in gitDir,
// and objects, references and configuration in commonDir. Otherwise both are equal.
type Layout struct {
	Root      string
	GitDir    string
	CommonDir string
}

// WorkTree returns the root of the work tree around dir.
func WorkTree(dir string) (root string, ok bool) {
	l, err := discover(dir)
	return l.Root, err == nil
}

// discover searches upwards from dir for a .git. Like git, it skips a folder of that name without a
// repository and fails at an invalid file. It only obeys GIT_CEILING_DIRECTORIES (git(1)); GIT_DIR
// of a parent process means another repository.
func discover(dir string) (Layout, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("find the checkout: %w", err)
	}
	start, err = filepath.EvalSymlinks(start)
	if errors.Is(err, fs.ErrNotExist) {
		return Layout{}, missingFolder(dir)
	}
	if err != nil {
		return Layout{}, fmt.Errorf("find the checkout: %w", err)
	}
	ceilings := ceilingsOf(os.Getenv("GIT_CEILING_DIRECTORIES"))
	for at := start; ; at = filepath.Dir(at) {
		if gitDir, ok := GitDirOf(at); ok {
			return withCommonDir(Layout{Root: at, GitDir: gitDir})
		}
		if isGitDir(at) {
			return Layout{}, fmt.Errorf("%s: %w", start, ErrBare)
		}
		if isFile(filepath.Join(at, ".git")) {
			return Layout{}, fmt.Errorf("%s names no git folder: %w", filepath.Join(at, ".git"), ErrNotRepository)
		}
		if above := filepath.Dir(at); at == above || slices.Contains(ceilings, above) {
			return Layout{}, fmt.Errorf("%s: %w", start, ErrNotRepository)
		}
	}
}

// missingFolder reports a missing folder: an ErrNotRepository with its own remedy.
type missingFolder string

func (dir missingFolder) Error() string {
	return fmt.Sprintf("%s: there is no such folder: check the path, or leave out --repo to work in the current one", string(dir))
}

func (missingFolder) Is(target error) bool { return target == ErrNotRepository }

// ceilingsOf returns the folders of a list that bound a search, with resolved links except after an
// empty entry.
func ceilingsOf(list string) (ceilings []string) {
	resolve := true
	for _, path := range filepath.SplitList(list) {
		if path == "" {
			resolve = false
			continue
		}
		if real, err := filepath.EvalSymlinks(path); resolve && err == nil {
			path = real
		}
		ceilings = append(ceilings, filepath.Clean(path))
	}
	return ceilings
}

// LayoutAt is the layout of a bare or plain repository at path.
func LayoutAt(path string) (Layout, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return Layout{}, fmt.Errorf("open repository: %w", err)
	}
	gitDir, ok := GitDirOf(dir)
	if !ok {
		gitDir = dir
	}
	if !isGitDir(gitDir) {
		return Layout{}, fmt.Errorf("%s: %w", path, ErrNotRepository)
	}
	return withCommonDir(Layout{Root: dir, GitDir: gitDir})
}

// GitDirOf returns the git folder of the work tree at dir, if it is one.
func GitDirOf(dir string) (string, bool) {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return path, isGitDir(path)
	}
	target, err := namedFolder(path, "gitdir: ")
	return target, err == nil && isGitDir(target)
}

// NamedBy returns the git folder named by a tree's .git file, as seen by commands instead of the
// checkout, or "".
func (l Layout) NamedBy(tree *os.Root, file string) string {
	data, err := regularfile.ReadIn(tree, file)
	target, ok := strings.CutPrefix(string(data), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	return absolute(filepath.Join(l.Root, filepath.FromSlash(path.Dir(file))), strings.TrimRight(target, "\r\n"))
}

// namedFolder returns the folder after prefix in a file.
func namedFolder(file, prefix string) (string, error) {
	data, err := regularfile.Read(file, 1<<16)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(string(data), prefix)
	if !ok {
		return "", fmt.Errorf("%s names no folder", file)
	}
	return absolute(filepath.Dir(file), strings.TrimRight(target, "\r\n")), nil
}

// isGitDir is git's own test of a git folder: HEAD, objects and refs.
func isGitDir(dir string) bool {
	if !isHead(filepath.Join(dir, "HEAD")) {
		return false
	}
	common, err := commonDirOf(dir)
	return err == nil && isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
}

// isHead reports whether a file may be a HEAD: it names a reference or commit, existing or not.
func isHead(path string) bool {
	if target, err := os.Readlink(path); err == nil {
		return strings.HasPrefix(target, "refs/")
	}
	data, err := regularfile.Read(path, 1<<16)
	if err != nil {
		return false
	}
	if reference, ok := strings.CutPrefix(string(data), "ref:"); ok {
		return strings.HasPrefix(strings.TrimLeft(reference, " \t\r\n"), "refs/")
	}
	const idDigits = 40 // those of SHA-256 begin with as many
	if len(data) < idDigits {
		return false
	}
	_, err = hex.DecodeString(string(data[:idDigits]))
	return err == nil
}

func withCommonDir(l Layout) (Layout, error) {
	common, err := commonDirOf(l.GitDir)
	if err != nil {
		return Layout{}, fmt.Errorf("find the git folder of %s: %w", l.Root, err)
	}
	l.CommonDir = common
	return l, nil
}

func commonDirOf(gitDir string) (string, error) {
	common, err := namedFolder(filepath.Join(gitDir, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	return common, err
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ObjectFolders returns the git folders with a repository's objects: its own and, recursively,
// those in objects/info/alternates.
func ObjectFolders(commonDir string) ([]string, error) {
	const deepest = 5 // as in git
	list := []string{commonDir}
	depth := map[string]int{commonDir: 0}
	for i := 0; i < len(list); i++ {
		objects := filepath.Join(list[i], "objects")
		data, err := regularfile.Read(filepath.Join(objects, "info", "alternates"), regularfile.Small)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the alternates of %s: %w", objects, err)
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			alternate := absolute(objects, line)
			if filepath.Base(alternate) != "objects" || strings.HasPrefix(line, `"`) {
				return nil, &UnsupportedError{
					Feature: fmt.Sprintf("the alternate object folder %q", line),
					Remedy:  "run `git repack -a -d` and remove objects/info/alternates",
				}
			}
			dir := filepath.Dir(alternate)
			if _, seen := depth[dir]; !seen && depth[list[i]] < deepest && isDir(alternate) {
				depth[dir] = depth[list[i]] + 1
				list = append(list, dir)
			}
		}
	}
	return list, nil
}

// QuoteAlternate quotes a path for a colon-separated list.
func QuoteAlternate(path string) string {
	if strings.ContainsAny(path, ":\"\n") {
		return quote(path)
	}
	return path
}
