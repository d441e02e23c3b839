package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// answering answers at the first port of a sandbox with a text, until the test ends.
func answering(t *testing.T, box *Sandbox, text string) {
	t.Helper()
	listeners, err := box.Listeners()
	if err != nil || len(listeners) != 1 {
		t.Fatal(listeners, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listeners[0].Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listeners[0].Close(); <-done })
}

func atPort(port int) func(*Options) { return func(o *Options) { o.Ports = []int{port} } }

// Who opened a sandbox answers its commands at a port, and reaches that from outside.
func TestCommandsReachListenerAtPort(t *testing.T) {
	box, o := confined(t, "full", atPort(543))
	answering(t, box, "hello\n")
	must.Same(t, "hello\n", run(t, box, o, "bash -c 'cat </dev/tcp/127.0.0.1/543'"), "commands")
	conn := must.Get(box.Dial(t.Context(), 543))(t)
	defer conn.Close()
	must.Same(t, "hello\n", string(must.Get(io.ReadAll(conn))(t)), "from outside")
	must.Fail(t, "refused", must.Err(box.Dial(t.Context(), 544)), "where nobody listens")
}

// Neither sandbox reaches what answers in the other, nor what answers on the machine.
func TestSandboxesShareNoListeners(t *testing.T) {
	machine := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer machine.Close()
	one, o := confined(t, "full", atPort(5432))
	answering(t, one, "one")
	other, _ := confined(t, "full", atPort(5433))
	answering(t, other, "other")
	for _, port := range []int{5433, machine.Addr().(*net.TCPAddr).Port} {
		must.Same(t, "", run(t, one, o, fmt.Sprintf("! bash -c 'cat </dev/tcp/127.0.0.1/%d' 2>/dev/null", port)), port)
		must.Fail(t, "", must.Err(one.Dial(t.Context(), port)), "port", port, "is reached by a socket of the sandbox")
	}
	for _, address := range []string{"169.254.169.254/80", "127.0.0.2/5433", "10.0.0.1/80"} {
		run(t, one, o, "! bash -c 'cat </dev/tcp/"+address+"' 2>/dev/null")
	}
}

// A sandbox that is closed leaves nobody waiting.
func TestDialFailsAfterClose(t *testing.T) {
	box, _ := confined(t, "full", nil)
	must.Do(t, box.Close())
	must.Fail(t, "", must.Err(box.Dial(t.Context(), 1)), "there is a connection")
}

// borrowing opens a sandbox in the workspace that another one lends.
func borrowing(t *testing.T, box *Sandbox, o Options, toWrite bool, name string) (*Sandbox, Options) {
	t.Helper()
	lent, err := box.Borrow(toWrite)
	if err != nil || lent == nil {
		t.Fatalf("%s: it is not lent: %v", name, err)
	}
	defer lent.Close()
	o.BorrowedFrom, o.Overlay, o.LendToRead, o.LendToWrite, o.Borrowed = o.Overlay, "", 0, 0, lent
	o.Scratch = filepath.Join(filepath.Dir(o.Scratch), name)
	if !toWrite {
		o.Mode = grants.ReadOnly
	}
	other := must.Get(Open(t.Context(), o))(t)
	t.Cleanup(func() {
		must.Is(t, nil, errors.Join(other.Close(), RemoveScratch(o.Scratch)))
	})
	return other, o
}

// What one sandbox lends another sees as it is then and later, and can't change.
func TestLendsWorkspaceReadOnly(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, func(o *Options) { overlaid(t)(o); o.LendToRead = 2 })
		run(t, box, o, "echo changed >file")
		for i := range o.LendToRead {
			other, guest := borrowing(t, box, o, false, fmt.Sprint("guest-", i))
			if got := run(t, other, guest, "cat file .git/HEAD; ! cat hidden; ! echo x 2>/dev/null >file; ! rm -r dir 2>/dev/null; ! echo x 2>/dev/null >.git/HEAD; echo own >/tmp/own"); !strings.HasPrefix(got, "changed\nold\n") {
				t.Errorf("it sees %q", got)
			}
			run(t, box, o, "echo later >later; rm file; echo changed >file")
			must.Same(t, "later\n", run(t, other, guest, "cat later"), "later it sees")
		}
		run(t, box, o, "cat later && test ! -e own")
	})
}

// Commands that take themselves for somebody else are who they are on the machine.
func TestCommandsRunAsMappedUser(t *testing.T) {
	box, o := confined(t, "full", func(o *Options) { o.User = &User{UID: 4321, GID: 5678} })
	must.Same(t, "4321\n5678\n4321\n0\n", run(t, box, o, "id -u; id -g; touch made; stat -c %u made; grep -c CapEff.*[1-9a-f] /proc/self/status || true"), "they")
	info := must.Get(os.Stat(filepath.Join(o.Workspace, "made")))(t)
	must.Same(t, os.Geteuid(), ownerOf(info), "on the machine it belongs to")
	run(t, box, o, "! chown 0 made 2>/dev/null; ! chmod u+s made 2>/dev/null")
}

// Without namespaces there is nothing to be a neighbour by.
func TestPortsRequireNetworkNamespace(t *testing.T) {
	base := tempDir(t)
	for name, o := range map[string]Options{
		"landlock": {Network: NetworkLoopback, At: LevelLandlock},
		"none":     {Network: NetworkLoopback},
		"full":     {Network: NetworkFull},
	} {
		o.Mode, o.Workspace, o.Scratch, o.Ports = "workspace-write", base, filepath.Join(base, "scratch"), []int{5432}
		if name == "none" {
			o.Mode = "danger-full-access"
		}
		o.disabledLayers = tiers[name]
		box, err := Open(t.Context(), o)
		if err == nil {
			t.Errorf("%s: it is open", name)
			_ = box.Close()
		}
	}
}

// What one sandbox lends to be changed another changes for both, and nothing of what is kept
// from commands in the first.
func TestLendsWorkspaceForWriting(t *testing.T) {
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, func(o *Options) { overlaid(t)(o); o.LendToRead, o.LendToWrite = 1, 1 })
		other, guest := borrowing(t, box, o, true, "guest")
		if got := run(t, other, guest, "cat .git/HEAD; ! cat hidden; echo theirs >file; mkdir -p new/dir; echo x >new/dir/x; ! echo x 2>/dev/null >.git/HEAD; ! rm -rf .git 2>/dev/null"); !strings.HasPrefix(got, "old\n") {
			t.Errorf("it sees %q", got)
		}
		must.Same(t, "theirs\nx\n", run(t, box, o, "cat file new/dir/x; echo more >>new/dir/x"), "the lender sees")
		must.Same(t, "x\nmore\n", run(t, other, guest, "cat new/dir/x"), "later it sees")
		if again, err := box.Borrow(true); again != nil || err != nil {
			t.Errorf("it is lent more often than was said: %v", err)
		}
	})
}

func ownerOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// serving are the options of a sandbox like that of a service, which borrows the workspace
// of one that it is opened beside.
func (o outer) serving() Options {
	dir, err := os.MkdirTemp(filepath.Dir(o.Options.Scratch), "lender-")
	orPanic(err)
	lender := o.Options
	lender.Scratch, lender.Overlay, lender.LendToRead, lender.Ports = filepath.Join(dir, "scratch"), filepath.Join(dir, "overlay"), 1, []int{5432}
	box, err := Open(context.Background(), lender)
	orPanic(err)
	service := o.Options
	lent, err := box.Borrow(false)
	orPanic(err)
	service.Mode, service.Borrowed, service.BorrowedFrom, service.User = grants.ReadOnly, lent, lender.Overlay, &User{UID: 4321, GID: 5678}
	return service
}

func TestNothingGetsOutOfService(t *testing.T) {
	noneEscapesTiers(t, func(o *outer) { o.Serves = true })
}
