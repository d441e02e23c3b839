package main

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// poison changes the files of caches in every way that a program has. It ignores refusals by the
// sandbox.
func poison(dirs []string) error {
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			poisonCache(dir)
		}
	}
	return nil
}

// poisonCache changes the files of a cache folder, each by the method that its name states.
func poisonCache(dir string) {
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, flag int, text string) {
		if f, err := os.OpenFile(in(name), os.O_WRONLY|os.O_CREATE|flag, 0o644); err == nil {
			_, _ = f.WriteString(text)
			_ = f.Close()
		}
	}
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	write("append", os.O_APPEND, "poison\n")
	write("write", 0, "poison")
	_ = os.Link(in("link"), in("linked"))
	write("linked", os.O_TRUNC, "poison\n")
	_ = os.Chmod(in("mode"), 0o777)
	_ = os.Chtimes(in("time"), old, old)
	write("other", os.O_TRUNC, "poison\n")
	_ = os.Rename(in("other"), in("replace"))
	write("truncate", os.O_TRUNC, "")
	_ = os.Remove(in("remove"))
	_ = unix.Setxattr(dir, "user.overlay.opaque", []byte("y"), 0)
	_ = unix.Setxattr(in("attribute"), "user.poison", []byte("y"), 0)
	write("attribute", os.O_TRUNC, "poison\n")
	writeByMmap(in("mapped"), "p")
	_ = os.Rename(in("folder"), in("moved"))
	_ = os.MkdirAll(in("folder"), 0o755)
	write("folder/move", os.O_TRUNC, "poison\n")
	_ = os.MkdirAll(in("moved"), 0o755)
	_ = os.Remove(in("moved/link"))
	_ = os.Symlink("/tmp", in("moved/link"))
	_ = os.RemoveAll(in("folder/opaque"))
	_ = os.MkdirAll(in("folder/opaque"), 0o755)
	write("folder/opaque/new", os.O_TRUNC, "poison\n")
	write("new", os.O_TRUNC, "poison\n")
}

// writeByMmap writes the beginning of a file through memory.
func writeByMmap(path, text string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < int64(len(text)) {
		return
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, len(text), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return
	}
	copy(mapped, text)
	_ = unix.Munmap(mapped)
}
