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

// Layout is the location of a checkout's parts. In a linked work tree, GitDir has HEAD and the
// index, and CommonDir the objects, references and configuration. Otherwise both are the same
// folder.
type Layout struct {
	Root      string
	GitDir    string
	CommonDir string
}

// WorkTree returns the root of the work tree that contains dir. ok is false if there is none.
func WorkTree(dir string) (root string, ok bool) {
	l, err := discover(dir)
	return l.Root, err == nil
}

// discover looks for a .git in dir and the folders above. Like git, it skips a .git folder without
// a repository and fails at an invalid .git file. It obeys GIT_CEILING_DIRECTORIES (git(1)), but no
// other variable: a GIT_DIR of a parent process belongs to another repository.
func discover(dir string) (Layout, error) {
	start, err := filepath.Abs(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Layout{}, noCheckout("the current folder was deleted: change to another one, or name a checkout with --repo")
	}
	if err == nil {
		start, err = filepath.EvalSymlinks(start)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Layout{}, noCheckout(fmt.Sprintf("there is no folder %s: check the path, or leave out --repo to work in the current one", dir))
	}
	if err != nil {
		return Layout{}, fmt.Errorf("find the checkout: %w", err)
	}
	ceilings := ceilingsOf(os.Getenv("GIT_CEILING_DIRECTORIES"))
	none := fmt.Errorf("%s: %w", start, ErrNotRepository)
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
		if _, err := os.Stat(filepath.Join(at, ".git", "HEAD")); errors.Is(err, fs.ErrPermission) {
			none = noCheckout(fmt.Sprintf("%s cannot be read (permission denied): run as the user that it belongs to", filepath.Join(at, ".git")))
		}
		if above := filepath.Dir(at); at == above || slices.Contains(ceilings, above) {
			return Layout{}, none
		}
	}
}

// noCheckout is an ErrNotRepository with a more exact message.
type noCheckout string

func (why noCheckout) Error() string { return string(why) }

func (noCheckout) Is(target error) bool { return target == ErrNotRepository }

// ceilingsOf returns the folders at which a search stops. It resolves links, except in entries
// after an empty one, like git.
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

// LayoutAt returns the layout of a bare or plain repository at path.
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

// GitDirOf returns the git folder of the work tree at dir. It returns false if dir is no work tree.
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

// NamedBy returns the git folder that a .git file in tree names, or "". tree may be a layer: the
// result is the path that commands in it would use.
func (l Layout) NamedBy(tree *os.Root, file string) string {
	data, err := regularfile.ReadIn(tree, file)
	target, ok := strings.CutPrefix(string(data), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	return absolute(filepath.Join(l.Root, filepath.FromSlash(path.Dir(file))), strings.TrimRight(target, "\r\n"))
}

// namedFolder returns the absolute path of the folder that a file names after prefix.
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

// isGitDir reports whether git accepts a folder as a git folder: it must have HEAD, objects and
// refs.
func isGitDir(dir string) bool {
	if !isHead(filepath.Join(dir, "HEAD")) {
		return false
	}
	common, err := commonDirOf(dir)
	return err == nil && isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
}

// isHead reports whether a file can be a HEAD. It must name a reference or a commit, which need not
// exist.
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
	const idDigits = 40 // an id of SHA-256 is longer
	if len(data) < idDigits {
		return false
	}
	_, err = hex.DecodeString(string(data[:idDigits]))
	return err == nil
}

// withCommonDir returns l with CommonDir set.
func withCommonDir(l Layout) (Layout, error) {
	common, err := commonDirOf(l.GitDir)
	if err != nil {
		return Layout{}, fmt.Errorf("find the git folder of %s: %w", l.Root, err)
	}
	l.CommonDir = common
	return l, nil
}

// commonDirOf returns the folder that the file commondir names, or gitDir without such a file.
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

// requireRegularFiles returns an *UnsupportedError if a file of the git folders is a pipe or another
// special file. git would wait for the pipe's writer.
func (l Layout) requireRegularFiles() error {
	for _, name := range [...]string{"HEAD", "config", "config.worktree", "index", "info/attributes", "info/exclude", "info/sparse-checkout", "objects/info/alternates", "packed-refs", "shallow"} {
		if err := requireRegular(filepath.Join(l.GitDir, name), filepath.Join(l.CommonDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// requireRegular returns an *UnsupportedError for a path to something else than a regular file or the
// null device.
func requireRegular(paths ...string) error {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !regularfile.Reads(info) {
			return NotRegular(path)
		}
	}
	return nil
}

// NotRegular returns the error for a special file that git would read.
func NotRegular(path string) *UnsupportedError {
	return &UnsupportedError{Feature: path + ", which is not a regular file", Remedy: "replace it by a regular file or remove it"}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ObjectFolders returns the git folders with a repository's objects: its own folder, and those in
// objects/info/alternates, recursively. lost lists the missing ones, which git ignores.
func ObjectFolders(commonDir string) (list, lost []string, err error) {
	const deepest = 5 // nesting of alternates, as in git
	list = []string{commonDir}
	depth := map[string]int{commonDir: 0}
	for i := 0; i < len(list); i++ { // list grows meanwhile
		alternates, err := alternatesOf(filepath.Join(list[i], "objects"))
		if err != nil {
			return nil, nil, err
		}
		for _, alternate := range alternates {
			dir := filepath.Dir(alternate)
			if _, seen := depth[dir]; seen || depth[list[i]] == deepest {
				continue
			}
			depth[dir] = depth[list[i]] + 1
			if isDir(alternate) {
				list = append(list, dir)
			} else {
				lost = append(lost, dir)
			}
		}
	}
	return list, lost, nil
}

// alternatesOf returns the absolute paths in the info/alternates of an objects folder.
func alternatesOf(objects string) (all []string, err error) {
	data, err := regularfile.Read(filepath.Join(objects, "info", "alternates"), regularfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
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
		all = append(all, alternate)
	}
	return all, nil
}

// QuoteAlternate quotes a path for a colon-separated list of alternates, if needed.
func QuoteAlternate(path string) string {
	if strings.ContainsAny(path, ":\"\n") {
		return quote(path)
	}
	return path
}
