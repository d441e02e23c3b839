// Package stage owns what happens inside a sandbox before and around the
// commands: the early start of the process that holds a run's namespaces, the
// mounts, the dropping of rights, Landlock, seccomp, and the supervisor that
// starts commands on request. It is told everything by the process that started
// it and decides nothing: which paths a run has is package grants', which calls
// of the kernel package filter's, which network package sandbox's.
//
// Its init function takes over when the program was started under Name, before
// the rest of the program is initialised, and never returns then. In a normal
// start it returns at once. For the same reason the package imports the
// standard library, golang.org/x/sys, go-landlock and what that applies to all
// threads with.
//
// First it builds: it makes the mounts and gives up all rights on every thread.
// Then it is the supervisor, confined as its commands are, and serves. It is not
// executed anew in between: a second start would cost more than all the rest.
package stage

import (
	"encoding/json"
	"os"
)

// Name is the program name (argv[0]) under which init takes over.
const Name = "agent-ci-sandbox"

// ControlFD is the descriptor of the socket to the process outside.
const ControlFD = 3

// Spec says how the process confines itself. It is the first frame on the
// control socket.
type Spec struct {
	Namespaced  bool      `json:"namespaced"` // the process stands in namespaces of its own
	OwnNetwork  bool      `json:"own_network"`
	LoopbackUp  bool      `json:"loopback_up"`
	Ports       []int     `json:"ports"` // to listen on at 127.0.0.1, for who is outside
	Mounts      []Mount   `json:"mounts"`
	Shown       string    `json:"shown"`         // a folder of which who is outside gets a descriptor, as it is inside; empty for none
	Lend        int       `json:"lend"`          // so many times the folder that is Shown is handed out as a mount, read-only
	LendToWrite int       `json:"lend_to_write"` // and so many times after these as it is
	Nothing     string    `json:"nothing"`       // an empty file, to lie over others
	Processes   int       `json:"processes"`     // most processes at once; 0 leaves it
	PIDMax      bool      `json:"pid_max"`       // the namespace has a pid_max of its own
	ProcessBase int       `json:"process_base"`  // processes that there are outside, which RLIMIT_NPROC counts
	Landlock    *Landlock `json:"landlock"`      // nil leaves it out
	Filters     Filters   `json:"filters"`       // of seccomp
}

// Filters are in the order of installing. The last has the supervisor asked about
// calls that set the bits set-user-ID and set-group-ID; RefuseSetid refuses them,
// where nobody can be asked.
type Filters struct {
	All         []Filter  `json:"all"`
	AskSetid    Filter    `json:"ask_setid"`
	Pass        [2]uint32 `json:"pass"` // secret; as the arguments 4 and 5 of fchmodat it lets the supervisor's own through
	RefuseSetid Filter    `json:"refuse_setid"`
}

// Filter is a program of classic BPF for seccomp: instructions as the kernel
// reads them (struct sock_filter), which are read faster here than a list.
type Filter []byte

// InstructionSize is how many bytes one has: 2 of code, 1 and 1 of jumps, 4 of
// a value, in the order of the machine.
const InstructionSize = 8

// MountKind says what stands at a path.
type MountKind string

const (
	// Hidden shows an empty read-only folder or an empty file.
	Hidden MountKind = "hidden"
	// Readable shows Source, read-only.
	Readable MountKind = "readable"
	// Writable shows Source.
	Writable MountKind = "writable"
	// Overlay shows Path itself and over it the changes in the folders Below, the
	// first topmost. What is changed now goes to Source. Each of these folders
	// has the two that overlayfs needs, upper and work. The folders Frozen have
	// changes, too, that nobody adds to: they lie right above Path, the first topmost.
	Overlay MountKind = "overlay"
	// Pinned shows what is there, as a mount that nobody can rename.
	Pinned MountKind = "pinned"
	// Borrowed shows the mount that came with the spec. BorrowedToWrite does, too: what of it
	// is writable may be changed.
	Borrowed        MountKind = "borrowed"
	BorrowedToWrite MountKind = "borrowed to write"
	// Removed has nothing there: what an overlay shows is removed from it.
	Removed MountKind = "removed"
)

// Mount is one path of the file system that differs from outside. A spec lists
// parents before children.
type Mount struct {
	Kind     MountKind `json:"kind"`
	Path     string    `json:"path"`
	Source   string    `json:"source,omitempty"`
	Below    []string  `json:"below,omitempty"`
	Frozen   []string  `json:"frozen,omitempty"`
	File     bool      `json:"file,omitempty"`
	Optional bool      `json:"optional,omitempty"` // its failing is no failure
}

// Landlock is what the ruleset grants. Paths that don't exist are passed over.
type Landlock struct {
	Config  int      `json:"config"`   // ABI version whose rights are handled
	Read    []string `json:"read"`     // read and execute
	Write   []string `json:"write"`    // everything
	Use     []string `json:"use"`      // files that are read and written, devices
	DenyNet bool     `json:"deny_net"` // TCP, and UDP where the kernel knows it
}

// Report is the answer to a Spec: the first frame from inside. The listeners at the
// spec's Ports come with it, then the folder that is Shown, and then the mounts of it;
// nobody inside keeps them.
type Report struct {
	Failed  string   `json:"failed,omitempty"` // the step that failed, empty when all is set up
	Error   string   `json:"error,omitempty"`
	Errno   uint     `json:"errno,omitempty"`   // the kernel's number of it, if it has one
	Skipped []string `json:"skipped,omitempty"` // optional mounts that failed, and why
	PIDMax  bool     `json:"pid_max,omitempty"` // the namespace's own limit of processes is set
}

// MostStreams is how many descriptors may come with a Start, MostPorts and MostLent how
// many ports and mounts a Spec may ask for, and MostReported how many come with a Report.
const (
	MostStreams  = 3
	MostPorts    = 17
	MostLent     = 200
	MostReported = MostPorts + 1 + MostLent
)

// Request asks the supervisor for one thing: one of them is set.
type Request struct {
	// Start comes with one descriptor for output and error, or with three for
	// input, output and error.
	Start  *Start  `json:"start,omitempty"`
	Signal *Signal `json:"signal,omitempty"`
	End    uint64  `json:"end,omitempty"` // kill what is left of this command's group and forget it
	// Pause stops all processes until Resume; nothing is started in between.
	Pause  bool `json:"pause,omitempty"`
	Resume bool `json:"resume,omitempty"`
	// Socket asks for a socket of TCP that is not connected: whom it reaches is decided by
	// where it was made.
	Socket bool `json:"socket,omitempty"`
}

// Start asks for a command. Bytes, since neither arguments nor variables need
// to be text.
type Start struct {
	ID   uint64   `json:"id"` // not 0, never used before
	Argv [][]byte `json:"argv"`
	Dir  string   `json:"dir"`
	Env  [][]byte `json:"env"`
	// Terminal says that the one descriptor is one, for input and control too.
	Terminal bool `json:"terminal,omitempty"`
}

// Signal asks for a signal to a command's process group.
type Signal struct {
	ID     uint64 `json:"id"`
	Number int    `json:"number"`
}

// Event is what the supervisor tells: that a command was started or not, that it
// has exited, that all are stopped or not, or that nothing lives any more.
type Event struct {
	ID      uint64 `json:"id"`
	Started bool   `json:"started,omitempty"`
	Paused  bool   `json:"paused,omitempty"`  // the answer to Pause
	Socket  bool   `json:"socket,omitempty"`  // the answer to Socket; the socket comes with it
	Error   string `json:"error,omitempty"`   // why it did not start, or not all are stopped
	Missing bool   `json:"missing,omitempty"` // it did not start since its program is missing
	Exited  bool   `json:"exited,omitempty"`
	Status  uint32 `json:"status,omitempty"` // wait status
	Empty   bool   `json:"empty,omitempty"`  // all that was started here is gone; the last event
}

// Frame is the message as it goes over the control socket: a length of four
// bytes, big endian, and JSON.
func Frame(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	n := len(body)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...), nil
}

// HeaderSize is the length of what stands before a frame's body.
const HeaderSize = 4

// BodySize reads a frame's header.
func BodySize(header []byte) int {
	return int(header[0])<<24 | int(header[1])<<16 | int(header[2])<<8 | int(header[3])
}

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name {
		enter()
	}
}
