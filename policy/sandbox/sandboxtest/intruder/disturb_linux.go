package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest/attempts"
)

// operation is a file operation.
type operation struct {
	words int // number of arguments
	// changed lists the words with changed paths. They must be in the siege: without protection the
	// machine would stay changed.
	changed []int
	do      func(a, b string) error
}

// operations maps the first word of a line. Failures are ignored: the kernel or sandbox refused.
var operations = map[string]operation{
	"rename": {2, []int{0, 1}, os.Rename},
	"exchange": {2, []int{0, 1}, func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}},
	"link":    {2, []int{0, 1}, os.Link},
	"symlink": {2, []int{1}, os.Symlink},
	"copy":    {2, []int{1}, copyFile},
	"write":   {2, []int{0}, func(a, text string) error { return os.WriteFile(a, []byte(text+"\n"), 0o644) }},
	"chmod":   {2, []int{0}, changeMode},
	"mkdir":   one(func(a string) error { return os.MkdirAll(a, 0o755) }),
	"remove":  one(os.RemoveAll),
	"fifo":    one(func(a string) error { return replaceBy(a, func() error { return unix.Mkfifo(a, 0o644) }) }),
	"socket":  one(func(a string) error { return replaceBy(a, func() error { return attempts.BindSocket(a) }) }),
	"sparse":  one(func(a string) error { return os.Truncate(a, 15<<40) }),
	"times":   one(ofSiege(func(path string) error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) })),
	"xattr":   one(ofSiege(func(path string) error { return unix.Setxattr(path, "user.intruder", []byte("x"), 0) })),
	"mark": {2, []int{0}, func(a, mark string) error {
		return ofSiege(func(path string) error { return unix.Setxattr(path, "user.overlay."+mark, []byte("y"), 0) })(a)
	}},
	"whiteout": one(func(a string) error {
		return replaceBy(a, func() error { return unix.Mknod(a, unix.S_IFCHR|0o600, 0) })
	}),
	"deep": one(func(a string) error { return os.MkdirAll(a+strings.Repeat("/d", 1500), 0o755) }),
}

func one(do func(a string) error) operation {
	return operation{1, []int{0}, func(a, _ string) error { return do(a) }}
}

// of does the operation with words as its arguments. It refuses a path outside of the siege.
func (o operation) of(words []string) error {
	if len(words) != o.words {
		return fmt.Errorf("it takes %d words", o.words)
	}
	for _, i := range o.changed {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(words[i])); err != nil || !inSiege(folder) {
			return errors.Join(err, fmt.Errorf("%s is not of the siege", words[i]))
		}
	}
	return o.do(words[0], words[len(words)-1])
}

// inSiege reports whether a path is below the workspace's parent folder.
func inSiege(real string) bool {
	dir, err := os.Getwd()
	if err != nil {
		return false
	}
	abs, err := filepath.Abs(real)
	return err == nil && strings.HasPrefix(abs+"/", filepath.Dir(dir)+"/")
}

// ofSiege changes attributes of a path in the siege. A device belongs to the machine and keeps its
// mode.
func ofSiege(change func(path string) error) func(path string) error {
	return func(path string) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		opened := fmt.Sprintf("/proc/self/fd/%d", fd)
		real, err := os.Readlink(opened)
		var stat unix.Stat_t
		if err = errors.Join(err, unix.Fstat(fd, &stat)); err != nil {
			return err
		}
		switch {
		case !inSiege(real):
			return fmt.Errorf("%s is not of the siege", real)
		case stat.Mode&unix.S_IFMT == unix.S_IFCHR:
			err := unix.Chmod(opened, stat.Mode&0o7777)
			if err == nil {
				fmt.Printf("ESCAPED the mode of the device at %s can be changed\n", path)
			}
			return err
		}
		return change(opened)
	}
}

// disturb does operations once, or repeatedly until it is killed: disturb once|forever OPERATION….
// Each operation is one argument, such as "rename a b".
func disturb(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: disturb once|forever OPERATION…")
	}
	for {
		for _, line := range args[1:] {
			words := strings.Fields(line)
			if len(words) == 0 || operations[words[0]].do == nil {
				return fmt.Errorf("there is no operation %q", line)
			}
			if err := operations[words[0]].of(words[1:]); err != nil && args[0] == "once" {
				fmt.Printf("%s: %v\n", line, err)
			}
		}
		if args[0] == "once" {
			return nil
		}
	}
}

func replaceBy(path string, do func() error) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return do()
}

// copyFile copies the readable part of a small file.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return errors.Join(err, fmt.Errorf("%s is not copied", from))
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

func changeMode(path, octal string) error {
	mode, err := strconv.ParseUint(octal, 8, 32)
	if err != nil {
		return err
	}
	return ofSiege(func(opened string) error { return unix.Chmod(opened, uint32(mode)) })(path)
}
