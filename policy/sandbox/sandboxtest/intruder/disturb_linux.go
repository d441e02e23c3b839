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
)

// operations are what is done to files, by the word that begins a line. What
// fails is passed over: the kernel or the sandbox did not let it happen.
var operations = map[string]func(words []string) error{
	"rename": two(func(a, b string) error { return os.Rename(a, b) }),
	"exchange": two(func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}),
	"link":    two(os.Link),
	"symlink": two(os.Symlink),
	"mkdir":   one(func(a string) error { return os.MkdirAll(a, 0o755) }),
	"remove":  one(os.RemoveAll),
	"fifo":    one(func(a string) error { return replaceBy(a, func() error { return unix.Mkfifo(a, 0o644) }) }),
	"socket":  one(func(a string) error { return replaceBy(a, func() error { return bind(a) }) }),
	"sparse":  one(func(a string) error { return os.Truncate(a, 15<<40) }),
	"write":   two(func(a, text string) error { return os.WriteFile(a, []byte(text+"\n"), 0o644) }),
	"copy":    two(copyFile),
	"chmod":   two(changeMode),
	"times":   one(func(a string) error { return os.Chtimes(a, time.Unix(1, 0), time.Unix(1, 0)) }),
	"xattr":   one(func(a string) error { return unix.Setxattr(a, "user.intruder", []byte("x"), 0) }),
	"deep":    one(func(a string) error { return os.MkdirAll(a+strings.Repeat("/d", 1500), 0o755) }),
}

// touchDevices sets the modes of device nodes to what they are: on the machine's
// own nothing else is tried.
func touchDevices([]string) error {
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/tty", "/proc/self/../version"} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if err := os.Chmod(path, info.Mode()&(os.ModePerm|os.ModeSticky)); err == nil {
			fmt.Println("ESCAPED the mode of", path, "can be changed")
		}
	}
	return nil
}

func one(do func(a string) error) func([]string) error {
	return func(words []string) error {
		if len(words) != 1 {
			return errors.New("it takes one word")
		}
		return do(words[0])
	}
}

func two(do func(a, b string) error) func([]string) error {
	return func(words []string) error {
		if len(words) != 2 {
			return errors.New("it takes two words")
		}
		return do(words[0], words[1])
	}
}

// disturb does operations, each an argument such as "rename a b", once, or over
// and over until it is ended: disturb once|forever OPERATION….
func disturb(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: disturb once|forever OPERATION…")
	}
	for {
		for _, line := range args[1:] {
			words := strings.Fields(line)
			if len(words) == 0 || operations[words[0]] == nil {
				return fmt.Errorf("there is no operation %q", line)
			}
			if err := operations[words[0]](words[1:]); err != nil && args[0] == "once" {
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

func bind(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Close(fd))
}

// copyFile copies what can be read of a small file.
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
	return unix.Chmod(path, uint32(mode))
}
