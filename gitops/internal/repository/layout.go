package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Layout is where the parts of a checkout lie. For a plain one gitDir and
// commonDir are the same; for a linked work tree gitDir holds HEAD and the
// index, commonDir the objects, references and configuration.
type Layout struct {
	Root      string
	GitDir    string
	CommonDir string
}

// discover walks up from dir to the folder that has a .git. It does not read
// the environment: GIT_DIR of whoever started us means another repository.
func discover(dir string) (Layout, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("find the checkout: %w", err)
	}
	start, err = filepath.EvalSymlinks(start)
	if errors.Is(err, fs.ErrNotExist) {
		return Layout{}, fmt.Errorf("%s: there is no such folder: %w", dir, ErrNotRepository)
	}
	if err != nil {
		return Layout{}, fmt.Errorf("find the checkout: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		if gitDir, ok := GitDirOf(at); ok {
			return withCommonDir(Layout{Root: at, GitDir: gitDir})
		}
		if isGitDir(at) {
			return Layout{}, fmt.Errorf("%s: %w", start, ErrBare)
		}
		if at == filepath.Dir(at) {
			return Layout{}, fmt.Errorf("%s: %w", start, ErrNotRepository)
		}
	}
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
	target, err := readPointer(path)
	if err != nil {
		return "", false
	}
	target = absolute(dir, target)
	return target, isGitDir(target)
}

// readPointer reads a .git file: "gitdir: PATH".
func readPointer(path string) (string, error) {
	data, err := regularfile.Read(path, 1<<16)
	if err != nil {
		return "", fmt.Errorf("read .git file: %w", err)
	}
	target, ok := strings.CutPrefix(string(data), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s is no .git file", path)
	}
	return strings.TrimRight(target, "\r\n"), nil
}

func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	common, err := commonDirOf(dir)
	return err == nil && isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
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
	data, err := regularfile.Read(filepath.Join(gitDir, "commondir"), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	return absolute(gitDir, strings.TrimRight(string(data), "\r\n")), nil
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
