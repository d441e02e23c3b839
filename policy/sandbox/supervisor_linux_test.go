package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// What a thread has is a thread's, and Go's runtime has several.
func TestConfinesEverySupervisorThread(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		run(t, box, o, "true") // it has done its work once, with all threads that this needs
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", box.conn.supervisor.pid))
		if err != nil || len(threads) < 2 {
			t.Fatalf("threads %v, %v", threads, err)
		}
		for _, thread := range threads {
			raw := must.Get(os.ReadFile(thread))(t)
			const none = "0000000000000000"
			for field, want := range map[string]string{
				"CapInh": none, "CapPrm": none, "CapEff": none, "CapAmb": none, "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": strconv.Itoa(ownFilters(t) + 4),
			} {
				must.Same(t, true, strings.Contains(string(raw), "\n"+field+":\t"+want+"\n"), field, "is not", want, "in", raw)
			}
		}
	})
}

// ownFilters is how many filters of seccomp this process has: a container's.
func ownFilters(t *testing.T) (n int) {
	t.Helper()
	raw := must.Get(os.ReadFile("/proc/self/status"))(t)
	_, after, _ := strings.Cut(string(raw), "\nSeccomp_filters:")
	must.Get(fmt.Sscan(after, &n))(t)
	return n
}

// What it built with leads to the file system as it is outside.
func TestSupervisorKeepsNoOutsideDescriptors(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only user 0 may list the descriptors of a process that shows nothing")
	}
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		run(t, box, o, "true")
		folder := fmt.Sprintf("/proc/%d/fd", box.conn.supervisor.pid)
		open, err := os.ReadDir(folder)
		if err != nil || len(open) < 4 {
			t.Fatalf("descriptors %v, %v", open, err)
		}
		for _, fd := range open {
			leads, err := os.Readlink(filepath.Join(folder, fd.Name()))
			if errors.Is(err, fs.ErrPermission) {
				t.Skip("looking at the descriptors of a process that shows nothing takes CAP_SYS_PTRACE here")
			}
			must.Do(t, err)
			kind, _, named := strings.Cut(leads, ":")
			mayBe := leads == os.DevNull || named && slices.Contains([]string{"socket", "pipe", "anon_inode"}, kind)
			if limit := strings.HasPrefix(leads, "/sys/fs/cgroup/"); !mayBe && !limit { // Go's runtime looks how many processors it may use
				t.Errorf("descriptor %s leads to %s", fd.Name(), leads)
			}
		}
	})
}

func TestSupervisorSurvivesSignals(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		cannotBeTaken := []unix.Signal{unix.SIGKILL, unix.SIGSTOP, 32, 33, 34} // the last three are threads' own, to Go as to C libraries
		for number := unix.Signal(1); number <= 64; number++ {
			if !slices.Contains(cannotBeTaken, number) {
				run(t, box, o, fmt.Sprintf("kill -%d $PPID || true", number))
			}
		}
		must.Same(t, "serves\n", run(t, box, o, "echo serves"))
	})
}

// What the supervisor does to outlive signals, commands don't inherit.
func TestCommandsInheritNoIgnoredSignals(t *testing.T) {
	own := must.Get(os.ReadFile("/proc/self/status"))(t)
	_, line, _ := strings.Cut(string(own), "SigIgn:")
	var before uint64 // by whoever started the tests
	must.Get(fmt.Sscanf(line, "%x", &before))(t)
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		var ignored, threads uint64 = 0, 1<<31 | 1<<33 // what is threads' own, C libraries set themselves
		if _, err := fmt.Sscanf(run(t, box, o, "grep SigIgn /proc/self/status"), "SigIgn:\t%x", &ignored); err != nil || ignored&^(threads|before) != 0 {
			t.Errorf("ignored are %x, %v", ignored, err)
		}
	})
}

// faultVariable makes the test binary a program that tells its parent of faults
// which it never made.
const faultVariable = "SANDBOX_TEST_FAULTS"

func makeUpFaults() {
	const queued = -1 // SI_QUEUE, sigaction(2)
	for number := unix.SIGHUP; number < unix.SIGSYS+1; number++ {
		info := [32]int32{int32(number), 0, queued}
		_, _, _ = unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(os.Getppid()), uintptr(number), uintptr(unsafe.Pointer(&info)))
	}
	os.Exit(0)
}

// To Go's runtime they are faults of its own. Where the supervisor is not the
// first of a pid namespace they end it (docs/security.md).
func TestSupervisorSurvivesForgedFaults(t *testing.T) {
	self := must.Get(os.Executable())(t)
	inTiers(t, namespacedTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		status, err := box.Run(t.Context(), Command{Argv: []string{self}, Dir: o.Workspace, Env: []string{faultVariable + "=all"}})
		if err != nil || status.ExitCode != 0 {
			t.Fatalf("%+v, %v", status, err)
		}
		must.Same(t, "serves\n", run(t, box, o, "echo serves"))
	})
}

// Where it is not the first of a pid namespace, commands can stop it.
func TestStoppingSupervisorEndsCommand(t *testing.T) {
	box, o := confined(t, "landlock", nil)
	must.Is(t, errGone, must.Err(box.Run(t.Context(), bash(o, "kill -STOP $PPID; exec sleep 1000000", nil))), "the command ends by")
}

// A command can stop what is being started, before it executes: then so waits
// the supervisor, and whoever asked it.
func TestEndsSupervisorThatStartsNothing(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, o := confined(t, tier, nil)
		box.conn.startWait = time.Millisecond
		must.Do(t, unix.Kill(box.conn.supervisor.pid, unix.SIGSTOP))
		if _, err := box.Run(t.Context(), bash(o, "true", nil)); !errors.Is(err, ErrNotStarted) || !errors.Is(err, errGone) {
			t.Errorf("the command ends by %v", err)
		}
	})
}

func TestOpenEndsUnresponsiveEarlyProcess(t *testing.T) {
	confined(t, "full", nil) // or skip
	begun := StartEarly(NetworkLoopback)
	begun.starting.Wait()
	pid := begun.conn.supervisor.pid
	begun.conn.startWait = time.Millisecond
	must.Do(t, unix.Kill(pid, unix.SIGSTOP))
	o := newOptions(t)
	o.Require, o.EarlyProcess = LevelFull, begun
	_, err := Open(t.Context(), o)
	if unavailable := (*UnavailableError)(nil); !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "confine: it did not answer") {
		t.Errorf("it ends by %v", err)
	}
}

func TestEarlyProcessServesAnyOptions(t *testing.T) {
	confined(t, "full", nil) // or skip
	for name, c := range map[string]struct {
		begun  Network
		change func(*Options)
		level  Level
	}{
		"what it was begun for":  {NetworkLoopback, nil, LevelFull},
		"another network":        {NetworkFull, nil, LevelFull},
		"fewer processes":        {NetworkLoopback, func(o *Options) { o.maxProcesses = 100 }, LevelFull},
		"no namespaces":          {NetworkLoopback, func(o *Options) { o.Require, o.disabledLayers = "", tiers["landlock"] }, LevelLandlock},
		"no confinement":         {NetworkLoopback, func(o *Options) { o.Mode, o.Require = grants.DangerFullAccess, "" }, LevelNone},
		"a level found before":   {NetworkLoopback, func(o *Options) { o.At = LevelFull }, LevelFull},
		"one that is taken":      {NetworkLoopback, func(o *Options) { o.EarlyProcess.End() }, LevelFull},
		"a folder that is there": {NetworkLoopback, func(o *Options) { o.Writable = []string{"/tmp"} }, LevelFull},
	} {
		t.Run(name, func(t *testing.T) {
			var begun *EarlyProcess
			box, o := confined(t, "full", func(o *Options) {
				o.EarlyProcess = StartEarly(c.begun)
				begun = o.EarlyProcess
				if c.change != nil {
					c.change(o)
				}
			})
			if box.Level() != c.level || !begun.taken {
				t.Errorf("it reaches %q; ended or taken: %t", box.Level(), begun.taken)
			}
			if c.level == LevelNone {
				return
			}
			must.Same(t, "serves\n", run(t, box, o, "echo serves"))
		})
	}
}

func TestFailedOpenEndsEarlyProcess(t *testing.T) {
	confined(t, "namespaces", nil) // or skip
	for name, use := range map[string]func(*Options){
		"options that are wrong": func(o *Options) { o.Mode = "loose" },
		"no workspace":           func(o *Options) { o.Workspace = filepath.Join(o.Workspace, "gone") },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.EarlyProcess = StartEarly(NetworkLoopback)
			use(&o)
			if box, err := Open(t.Context(), o); err == nil {
				_ = box.Close()
				t.Fatal("it was opened")
			}
			pid := o.EarlyProcess.conn.supervisor.pid
			must.Is(t, unix.ESRCH, unix.Kill(pid, 0), "process", pid)
		})
	}
}

// Empty comes before the namespaces are gone, and after all that ran in them.
func TestKillAllLeavesNothingRunning(t *testing.T) {
	box, o := confined(t, "namespaces", nil)
	run(t, box, o, `for i in 1 2 3 4 5; do (trap '' HUP TERM; setsid sh -c 'while :; do echo more >>growing; done' >/dev/null 2>&1 &) ; done; while [ ! -s growing ]; do :; done`)
	if !box.KillAll() {
		t.Fatal("something lives")
	}
	file := filepath.Join(o.Workspace, "growing")
	must.Do(t, os.Remove(file))
	must.Do(t, box.Close())
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("it grew on: %v", err)
	}
}

// The record says which limit holds, and the limit does hold where it says so.
func TestLayersNameProcessLimit(t *testing.T) {
	inTiers(t, allTiers, func(t *testing.T, tier string) {
		box, _ := confined(t, tier, nil)
		said := strings.Join(box.Layers(), "; ")
		want := limitByUser
		switch {
		case box.group != nil:
			want = limitByCgroup
		case tier != "landlock" && ownPIDMax():
			want = limitByPIDMax
		}
		must.Contain(t, said, want)
		if want == limitByUser && os.Geteuid() == 0 && !strings.Contains(said, "not limited") {
			t.Errorf("user 0 is said to be limited: %q", said)
		}
	})
}
