package attempts

import (
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Secret is the content of everything unreadable, and of the victim's environment.
const Secret = "the-secret-of-the-outside"

// World lists the targets of attacks. Attempts receive it as JSON.
type World struct {
	Workspace  string // writable
	Outside    string // contains the world-readable secret.txt; the user may write it
	Home       string
	Denied     string // a file in policy.deny_read
	Extra      string // a further writable folder
	Cache      string // the cache folder in the variable CacheVariable
	Temp       string // RUNNER_TEMP, with the file cred
	Victim     int    // pid, outside, of the process that opened the sandbox
	Namespace  string // the victim's pid namespace
	Supervisor int    `json:"-"` // pid, inside, of the process that starts the commands
	Socket     string // path of a Unix socket with a listener outside
	Datagram   string // path of a Unix datagram socket outside
	Abstract   string // name of an abstract socket, without its first byte
	TCP, UDP   int    // ports on the machine's loopback
	SharedKey  int    // of a System V segment
	Shared     string // file in /dev/shm
	Bare       bool   // nothing is confined
	// Bound is the host of a secret, Placeholder its variable; empty without one.
	Bound, Placeholder string
	Host               string // the host of commands' secrets, if it answers; or ""
	Proxy, Trust       string // proxy and certificate file to reach Host; "" if variables contain them
	OverlayFolder      string // folder with the changes of the workspace's overlay, or ""
}

func (w World) outside(name string) string   { return filepath.Join(w.Outside, name) }
func (w World) workspace(name string) string { return filepath.Join(w.Workspace, name) }
func (w World) home(name string) string      { return filepath.Join(w.Home, name) }
func (w World) extra(name string) string     { return filepath.Join(w.Extra, name) }
func (w World) cache(name string) string     { return filepath.Join(w.Cache, name) }
func (w World) changes(name string) string   { return filepath.Join(w.OverlayFolder, name) }

// of returns a path in a process's /proc folder.
func of(process int, name string) string { return fmt.Sprintf("/proc/%d/%s", process, name) }

// CacheVariable is the variable with the cache folder, for agent-ci and for commands.
const CacheVariable = "DENO_DIR"

// Baseline returns a cached baseline of agent-ci.
func (w World) Baseline() string { return w.home(".local/state/agent-ci/baselines/kept") }

// HiddenCache returns the cache file for policy.deny_read.
func (w World) HiddenCache() string { return w.cache("deep/cred") }

// Hidden returns the files for policy.deny_read in writable folders. Landlock alone cannot protect
// them.
func (w World) Hidden() []string {
	return []string{w.workspace("conf/deep/cred"), w.extra("a/cred")}
}

// NewWorld creates the targets below base, except processes and git files.
func NewWorld(base string) (World, error) {
	in := func(name string) string { return filepath.Join(base, name) }
	for name, content := range map[string]string{
		"outside/secret.txt": "x", "outside/truncate": "x", "outside/delete": "x", "outside/move": "x", "outside/kube/config": Secret,
		"home/.ssh/id_rsa": Secret, "home/.aws/credentials": Secret, "home/.netrc": Secret, "home/.config/gh/hosts.yml": Secret,
		"home/.local/state/agent-ci/baselines/kept": "x",
		"denied/file": Secret, "temp/cred": Secret, "workspace/mnt/.keep": "", "sockets/.keep": "",
		"workspace/conf/deep/cred": Secret, "extra/a/cred": Secret, "cache/entry": "x", "cache/deep/cred": Secret,
	} {
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			return World{}, err
		}
		if err := os.WriteFile(in(name), []byte(content), 0o644); err != nil {
			return World{}, err
		}
	}
	return World{
		Workspace: in("workspace"), Outside: in("outside"), Home: in("home"), Denied: in("denied/file"), Extra: in("extra"), Cache: in("cache"), Temp: in("temp"),
		Socket: in("sockets/host.sock"), Datagram: in("sockets/datagram.sock"), Abstract: filepath.Base(base),
		Shared: filepath.Join("/dev/shm", filepath.Base(base)),
	}, os.Symlink(in("outside/kube"), in("home/.kube"))
}

// SetVictim selects the attacked process.
func (w *World) SetVictim(pid int) (err error) {
	w.Victim = pid
	w.Namespace, err = os.Readlink(of(pid, "ns/pid"))
	return err
}

// mayHitItself reports whether the victim's number belongs to a process inside, because a pid namespace
// counts from 1.
func (w World) mayHitItself() bool {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || own == w.Namespace {
		return false
	}
	_, err = os.Stat(fmt.Sprintf("/proc/%d", w.Victim))
	return err == nil
}

// Inhabit creates living targets: listeners and shared memory.
func (w *World) Inhabit() (stop func(), err error) {
	var open []interface{ Close() error }
	defer func() {
		if err != nil {
			closeAll(open)
		}
	}()
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	open = append(open, tcp)
	w.TCP = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	open = append(open, udp)
	w.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	for _, address := range []string{w.Socket, "@" + w.Abstract} {
		l, err := net.Listen("unix", address)
		if err != nil {
			return nil, err
		}
		open = append(open, l)
	}
	datagrams, err := net.ListenPacket("unixgram", w.Datagram)
	if err != nil {
		return nil, err
	}
	open = append(open, datagrams)
	forget, err := w.share()
	if err != nil {
		return nil, err
	}
	var ends sync.WaitGroup
	ends.Go(func() { echo(udp) })
	return func() {
		closeAll(open)
		ends.Wait()
		forget()
	}, nil
}

// share creates the shared memory.
func (w *World) share() (forget func(), err error) {
	w.SharedKey = int(crc32.ChecksumIEEE([]byte(w.Abstract)) >> 1)
	id, err := unix.SysvShmGet(w.SharedKey, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		return nil, err
	}
	return func() {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		_ = os.Remove(w.Shared)
	}, os.WriteFile(w.Shared, []byte(Secret), 0o600)
}

func closeAll(open []interface{ Close() error }) {
	for _, c := range open {
		_ = c.Close()
	}
}

// echo sends each datagram back to its sender.
func echo(c net.PacketConn) {
	b := make([]byte, 16)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = c.WriteTo(b[:n], from)
	}
}
