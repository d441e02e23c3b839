package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
)

// allShapes leaves of all that an overlay can have.
const allShapes = `rm file && rm -r dir && mkdir dir && echo three >dir/three
echo more >>changed; chmod 751 onlymode; mv moved to; rm -r gone
mkdir -p a/b/c && echo hard >a/one && ln a/one a/b/two && ln a/one three && ln -s nowhere link && ln link samelink
mkfifo -m 640 pipe; echo locked >a/b/c/locked; chmod 555 a/b/c; chmod 2775 a/b; chmod 600 three
truncate -s 9M sparse && printf data | dd of=sparse bs=1 seek=5M conv=notrunc status=none && truncate -s 0 empty
touch -h -d '2001-02-03 04:05:06.789012345' link; touch -d '2002-03-04 05:06:07.891234567' a/one a/b/c dir changed .
! command -v python3 >/dev/null || python3 -c 'import os, socket; os.setxattr("changed", "user.mine", b"kept"); socket.socket(socket.AF_UNIX).bind("listener")'`

// tellAll tells of every file what commands see of it.
const tellAll = `find . -path ./.git -prune -o -name hidden -prune -o -printf '%P %M %n %s %T@ %U %G %l\n' | sort
find . -path ./.git -prune -o -type f -exec md5sum {} + | sort -k2; ls -i three a/one a/b/two | cut -d' ' -f1 | uniq | wc -l
! command -v python3 >/dev/null || python3 -c 'import os; print(os.listxattr("changed"), os.getxattr("changed", "user.mine"))'`

// forkOf opens a sandbox on a copy of the changes of another, none of whose commands runs.
func forkOf(t *testing.T, parent *Sandbox, o Options) (*Sandbox, Options) {
	t.Helper()
	to := filepath.Join(tempDir(t), "tree")
	t.Cleanup(func() { _ = RemoveScratch(to) })
	must.Do(t, parent.Paused(func() error { return layer.Copy(t.Context(), o.Overlay, to) }))
	return confined(t, "full", func(next *Options) {
		scratch := next.Scratch
		next.Folders = o.Folders
		next.Scratch, next.Overlay = scratch, to
	})
}

func TestForkCopiesTreeAndIsolatesChanges(t *testing.T) {
	sandboxtest.AsNobody(t)
	box, o := confined(t, "full", func(o *Options) {
		overlaid(t)(o)
		for _, name := range []string{"changed", "onlymode", "moved", "gone/one"} {
			put(t, filepath.Join(o.Workspace, name), "old\n", 0o644)
		}
	})
	t.Cleanup(func() { _ = RemoveScratch(o.Overlay) })
	run(t, box, o, allShapes)
	fork, of := forkOf(t, box, o)
	must.Same(t, run(t, box, o, tellAll), run(t, fork, of, tellAll), "the fork has another tree")
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(grants.Upper(of.Overlay), "sparse"), &stat); err != nil || stat.Blocks*512 > 1<<20 {
		t.Errorf("the holes of a file were filled: %d blocks, %v", stat.Blocks, err)
	}
	run(t, box, o, "echo parent >>changed; echo parent >>a/one; rm to; echo parent >dir/parent")
	run(t, fork, of, "echo fork >>dir/three; chmod u+w a/b/c; rm -r a/b/c; mkdir gone; echo fork >file")
	must.Same(t, "hard\nparent\nold\nmore\nparent\nthree\na/b/c\ndir/parent\ndir/three\n", run(t, box, o, "cat three changed dir/three; ls -d a/b/c; ls -d gone file to dir/* 2>/dev/null || true"), "the parent sees")
	must.Same(t, "hard\nold\nmore\nthree\nfork\ndir/three\nfile\ngone\nto\n", run(t, fork, of, "cat three changed dir/three; ls -d a/b/c 2>/dev/null; ls -d gone file to dir/*"), "the fork sees")
	must.Same(t, 2, len(namesIn(t, filepath.Join(o.Workspace, "dir"))), "the workspace has")
}

// A fork of what a command is writing has the beginning of it.
func TestForkSnapshotsOneMoment(t *testing.T) {
	box, o := confined(t, "full", overlaid(t))
	begin(t, box, o, `mkdir ticks; i=0; while :; do i=$((i+1)); echo $i >>ticks/one; echo $i >>ticks/two; [ $i != 100 ] || echo ready; done`)
	for range 3 {
		fork, of := forkOf(t, box, o)
		one, two := strings.Fields(run(t, fork, of, "cat ticks/one")), strings.Fields(run(t, fork, of, "cat ticks/two"))
		if behind := len(one) - len(two); behind < 0 || behind > 1 || len(two) < 100 {
			t.Errorf("%d lines and %d are not of one moment", len(one), len(two))
		}
	}
}

func TestForkRefusesUncopyableChanges(t *testing.T) {
	for name, c := range map[string]struct {
		make func(upper string) error
		want string // empty where it can
	}{
		"nothing":          {os.RemoveAll, ""},
		"a file of holes":  {func(upper string) error { return os.Truncate(filepath.Join(upper, "file"), 8<<30) }, ""},
		"a file of 1 GiB":  {func(upper string) error { return allocate(filepath.Join(upper, "file"), 1<<30) }, "more than 1024 MiB"},
		"an unread file":   {func(upper string) error { return os.Chmod(filepath.Join(upper, "dir/file"), 0) }, `of its changes, "dir/file" can't be copied: permission denied`},
		"an unread folder": {func(upper string) error { return os.Chmod(filepath.Join(upper, "dir"), 0) }, `of its changes, "dir" can't be copied: permission denied`},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "an unread") && !sandboxtest.AsNobody(t) {
				return
			}
			from, to := tempDir(t), filepath.Join(t.TempDir(), "to")
			put(t, filepath.Join(grants.Upper(from), "file"), "", 0o644)
			put(t, filepath.Join(grants.Upper(from), "dir/file"), "", 0o644)
			t.Cleanup(func() { _ = RemoveScratch(from) })
			if err := c.make(grants.Upper(from)); err != nil {
				t.Skip(err)
			}
			err := layer.Copy(t.Context(), from, to)
			if refused := (*layer.ForkError)(nil); c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// allocate has a file take room on the disk.
func allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, size), f.Close())
}

func TestCopyEndsWithContext(t *testing.T) {
	from := tempDir(t)
	put(t, filepath.Join(grants.Upper(from), "file"), "", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, layer.Copy(ctx, from, tempDir(t)))
}
