package attempts

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// overlayAttempts attack the workspace's overlay, its changes and lower files.
func overlayAttempts() []Attempt {
	return overlaid([]Attempt{
		{Name: "add to the changes of an overlay by their path", Do: func(w World) error { return create(w.changes("upper/planted")) }},
		{Name: "list the changes of an overlay by their path", Do: func(w World) error {
			entries, err := os.ReadDir(w.changes("upper"))
			if err == nil && len(entries) == 0 {
				return ErrNothing
			}
			return err
		}},
		{Name: "write to the work folder of an overlay", Do: func(w World) error { return create(w.changes("work/planted")) }},
		{Name: "move the changes of an overlay away", Do: func(w World) error { return moveAway(w.changes("upper")) }},
		{Name: "add to the changes of an overlay through agent-ci's root", Do: func(w World) error {
			return create(of(w.Victim, "root"+w.changes("upper/planted2")))
		}},
		{Name: "add to the changes of an overlay through the supervisor's root", Do: func(w World) error {
			return create(of(w.Supervisor, "root"+w.changes("upper/planted3")))
		}},
		{Name: "write to the workspace below an overlay through agent-ci's root", Do: func(w World) error {
			return create(of(w.Victim, "root"+w.workspace("planted")))
		}},
		{Name: "reach folders that agent-ci has open", Do: func(w World) error { return enterOpen(w.Victim) }, Unproven: true},
		{Name: "reach folders that the supervisor has open", Do: func(w World) error { return enterOpen(w.Supervisor) }, Unproven: true},
		{Name: "take an overlay away", Do: func(w World) error { return unix.Unmount(w.Workspace, unix.MNT_DETACH) }, Unproven: true},
		{Name: "take .git away from an overlay", Do: func(w World) error { return unix.Unmount(w.workspace(".git"), unix.MNT_DETACH) }, Unproven: true},
		{Name: "move an overlay", Do: func(w World) error {
			return unix.MoveMount(unix.AT_FDCWD, w.Workspace, unix.AT_FDCWD, w.workspace("mnt"), 0)
		}, Unproven: true},
		{Name: "mount an overlay over another", Do: func(w World) error {
			return unix.Mount("overlay", w.Workspace, "overlay", 0, "lowerdir="+w.Outside+":"+w.workspace("mnt"))
		}, Unproven: true},
		{Name: "change the options of an overlay", Do: func(w World) error {
			return unix.Mount("", w.Workspace, "", unix.MS_REMOUNT, "redirect_dir=on")
		}, Unproven: true},
		{Name: "pick an overlay's file system", Do: func(w World) error { return errorOf(unix.Fspick(unix.AT_FDCWD, w.Workspace, 0)) }, Unproven: true},
		{Name: "make a whiteout", Do: func(w World) error { return unix.Mknod(w.workspace("whiteout"), unix.S_IFCHR|0o600, 0) }},
		{Name: "make a whiteout by a longer mode", Do: func(w World) error {
			return unix.Mknodat(unix.AT_FDCWD, w.workspace("whiteout2"), unix.S_IFCHR|1<<20, 0)
		}, Unproven: true},
		{Name: "leave a whiteout behind by a rename", Do: func(w World) error {
			from := w.workspace("left")
			err := errors.Join(create(from), unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, from+"2", unix.RENAME_WHITEOUT))
			if info, failed := os.Lstat(from); err == nil && (failed != nil || info.Mode()&os.ModeCharDevice == 0) {
				return ErrNothing
			}
			return err
		}},
		{Name: "hide what is below a folder by a mark of overlayfs", Do: func(w World) error {
			return setOverlayMark(w.workspace("mnt"), "opaque", w.workspace("mnt/.keep"))
		}, Unproven: true},
		{Name: "hide a file by a mark of overlayfs", Do: func(w World) error {
			return setOverlayMark(w.workspace("mnt/.keep"), "whiteout", w.workspace("mnt/.keep"))
		}, Unproven: true},
		{Name: "lead a folder elsewhere by a mark of overlayfs", Do: func(w World) error {
			if err := unix.Setxattr(w.workspace("mnt"), "user.overlay.redirect", []byte("/conf"), 0); err != nil {
				return err
			}
			return errorOf(os.Lstat(w.workspace("mnt/deep")))
		}, Unproven: true},
	})
}

func overlaid(all []Attempt) []Attempt {
	for i := range all {
		all[i].overlaid = true
	}
	return all
}

// enterOpen makes a file in a folder opened by another process.
func enterOpen(process int) error {
	const most = 64
	refused := errors.New("it has no folder open")
	for fd := range most {
		err := create(of(process, fmt.Sprintf("fd/%d/planted", fd)))
		if err == nil {
			return nil
		}
		refused = err
	}
	return refused
}

// setOverlayMark sets a mark reserved for overlayfs, and succeeds if that removes a file.
func setOverlayMark(path, mark, gone string) error {
	if err := unix.Setxattr(path, "user.overlay."+mark, []byte("y"), 0); err != nil {
		return err
	}
	if _, err := os.Lstat(gone); err == nil {
		return ErrNothing
	}
	return nil
}
