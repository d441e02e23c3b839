package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// ticking are commands that write for ever: one that forks, and one that left for a
// session of its own. Another has stopped itself.
const ticking = `mkdir ticks
trap 'echo noticed >noticed' CONT
(while :; do sh -c 'echo x >>ticks/forked'; done) &
setsid sh -c 'while :; do echo x >>ticks/away; done' &
sh -c 'kill -STOP $$; echo x >resumed' & echo $! >stopper
until [ -s ticks/forked ] && [ -s ticks/away ] && grep -q '^State:.*T' /proc/$(cat stopper)/status; do :; done
echo ready
while :; do wait; done`

// begin starts a command that goes on and says when it is ready.
func begin(t *testing.T, box *Sandbox, o Options, text string) {
	t.Helper()
	output := newScreen("ready")
	p := must.Get(box.Start(bash(o, text, output)))(t)
	select {
	case <-output.seen:
	case <-p.Done():
		t.Fatalf("it ended: %s", output.buffer.String())
	}
}

// sizes returns the size of each file in dir by name.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, name := range namesIn(t, dir) {
		info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		all[name] = info.Size()
	}
	return all
}

// inGroup starts the sandbox in a new cgroup. It skips the test if this user may not make one.
func inGroup(t *testing.T) func(*Options) {
	return func(o *Options) {
		g := proc.NewGroup(0)
		if g == nil {
			t.Skip("no cgroup can be made here")
		}
		if err := errors.Join(g.Freeze(), g.Thaw()); err != nil {
			g.Remove()
			t.Skipf("no cgroup of use can be made here: %v", err)
		}
		o.EarlyProcess = &EarlyProcess{ownNetwork: true, maxProcesses: defaultProcesses, group: g}
		o.EarlyProcess.starter.Open()
		attributes := namespaceAttributes(true, nil)
		g.Attach(attributes)
		o.EarlyProcess.conn, o.EarlyProcess.startErr = startSupervisorWithSocket(&o.EarlyProcess.starter, attributes)
	}
}

func TestPauseStopsCommands(t *testing.T) {
	for name, how := range map[string]func(*testing.T) func(*Options){
		"signals":  func(*testing.T) func(*Options) { return nil },
		"a cgroup": inGroup,
	} {
		t.Run(name, func(t *testing.T) {
			box, o := confined(t, "full", how(t))
			if name == "a cgroup" && box.group == nil {
				t.Fatal("it has none")
			}
			begin(t, box, o, ticking)
			for range 4 {
				pauseOnce(t, box, o)
			}
			must.Contain(t, run(t, box, o, `grep ^State /proc/$(cat stopper)/status 2>/dev/null || ls resumed`), "T (stopped)")
			if _, err := os.Stat(filepath.Join(o.Workspace, "noticed")); name == "a cgroup" && err == nil {
				t.Error("commands noticed it")
			}
		})
	}
}

// pauseOnce looks at what commands write while they are paused and afterwards.
func pauseOnce(t *testing.T, box *Sandbox, o Options) {
	t.Helper()
	ticks, late := filepath.Join(o.Workspace, "ticks"), make(chan error, 1)
	var still map[string]int64
	err := box.Paused(func() error {
		still = sizes(t, ticks)
		go func() {
			_, err := box.Run(t.Context(), bash(o, "echo x >>ticks/late", nil))
			late <- err
		}()
		for range 300 {
			if now := sizes(t, ticks); !maps.Equal(now, still) {
				return fmt.Errorf("they write: %v after %v", now, still)
			}
		}
		return nil
	})
	must.Do(t, errors.Join(err, <-late))
	for name, size := range still {
		run(t, box, o, fmt.Sprintf(`until [ $(stat -c %%s ticks/%s) -gt %d ]; do :; done`, name, size))
	}
}

// A call of the kernel that writes much goes on when its process is told to stop.
func TestPauseWaitsForSystemCalls(t *testing.T) {
	box, o := confined(t, "full", nil)
	begin(t, box, o, `mkdir ticks; echo ready; while :; do dd if=/dev/zero of=ticks/large bs=32M count=1 2>/dev/null; done`)
	for range 4 {
		err := box.Paused(func() error {
			still := sizes(t, filepath.Join(o.Workspace, "ticks"))
			for range 3000 {
				if now := sizes(t, filepath.Join(o.Workspace, "ticks")); !maps.Equal(now, still) {
					return fmt.Errorf("it writes: %v after %v", now, still)
				}
			}
			return nil
		})
		must.Do(t, err)
	}
}

func TestPausedRequiresNamespaces(t *testing.T) {
	done := errors.New("done")
	do := func() error { return done }
	opened := func() error { return errors.New("it was opened") }
	must.Is(t, done, (&Sandbox{openLater: opened}).Paused(do), "before anything was started")
	box, o := confined(t, "landlock", nil)
	run(t, box, o, "true")
	if err := box.Paused(do); !errors.As(err, new(*PauseError)) {
		t.Errorf("without namespaces: %v", err)
	}
}
