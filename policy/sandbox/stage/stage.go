// Package stage is the first process of a sandbox, the supervisor. It sets up mounts, drops rights,
// applies Landlock and seccomp, and starts the commands. The process outside decides everything: package
// grants about paths, package filter about calls, package sandbox about the network.
//
// If the program was started under Name, the package's init function runs the supervisor and never
// returns. It must run before other packages are initialised. So the package only imports the standard
// library, golang.org/x/sys, go-landlock, and the library that go-landlock uses for all threads.
//
// The process first confines every thread, and then serves requests with the rights of its commands. It
// does not execute itself again, because that would take more time than everything else.
package stage

import (
	"encoding/binary"
	"encoding/json"
	"os"
)

// Name is the argv[0] of the supervisor.
const Name = "agent-ci-sandbox"

// ControlFD is the descriptor of the socket to the process outside.
const ControlFD = 3

// Spec describes how the process confines itself. It is the first frame on the control socket.
type Spec struct {
	Namespaced   bool      `json:"namespaced"` // the process is in its own namespaces
	OwnNetwork   bool      `json:"own_network"`
	LoopbackUp   bool      `json:"loopback_up"`
	Ports        []int     `json:"ports"` // ports of 127.0.0.1 whose listeners go to the process outside
	Mounts       []Mount   `json:"mounts"`
	SharedFolder string    `json:"shared_folder"` // a folder whose descriptor, as seen inside, goes to the process outside; "" for none
	LendToRead   int       `json:"lend_to_read"`  // number of read-only mounts of SharedFolder to hand out
	LendToWrite  int       `json:"lend_to_write"` // number of writable ones, after these
	EmptyFile    string    `json:"empty_file"`    // an empty file that covers hidden ones
	Processes    int       `json:"processes"`     // limit of simultaneous processes; 0 sets none
	PIDMax       bool      `json:"pid_max"`       // the namespace has its own pid_max
	ProcessBase  int       `json:"process_base"`  // number of processes outside that RLIMIT_NPROC counts
	Landlock     *Landlock `json:"landlock"`      // nil for none
	Filters      Filters   `json:"filters"`       // of seccomp
}

// Filters contains the seccomp filters. All are installed first, in order. AskSetid then reports calls
// that set set-user-ID or set-group-ID bits. If reports are impossible, RefuseSetid refuses these calls.
type Filters struct {
	All         []Filter  `json:"all"`
	AskSetid    Filter    `json:"ask_setid"`
	Permit      [2]uint32 `json:"pass"` // a secret that permits the supervisor's own calls: arguments 4 and 5 of fchmodat
	RefuseSetid Filter    `json:"refuse_setid"`
}

// Filter is a classic BPF program for seccomp in the kernel's format (struct sock_filter). As JSON it is
// faster to parse than a list of instructions.
type Filter []byte

// InstructionSize is the size of an instruction in bytes: 2 for the code, 1 for each of two jumps, and 4
// for a value. The byte order is the machine's.
const InstructionSize = 8

// MountKind is the kind of a mount.
type MountKind string

const (
	// Hidden shows an empty read-only folder or an empty file.
	Hidden MountKind = "hidden"
	// Readable shows Source, read-only.
	Readable MountKind = "readable"
	// Writable shows Source.
	Writable MountKind = "writable"
	// Overlay shows Path with the changes in Below and then Frozen; the first of each is topmost. New
	// changes go to Source. Each of these folders has overlayfs's subfolders upper and work. Frozen
	// layers never change.
	Overlay MountKind = "overlay"
	// Pinned shows the existing files as a mount that cannot be renamed.
	Pinned MountKind = "pinned"
	// Borrowed shows the mount sent with the spec. BorrowedToWrite keeps its writable parts writable.
	Borrowed        MountKind = "borrowed"
	BorrowedToWrite MountKind = "borrowed to write"
	// Removed removes the path from an overlay.
	Removed MountKind = "removed"
)

// Mount describes a path that differs from the one outside. A Spec lists parent paths first.
type Mount struct {
	Kind     MountKind `json:"kind"`
	Path     string    `json:"path"`
	Source   string    `json:"source,omitempty"`
	Below    []string  `json:"below,omitempty"`
	Frozen   []string  `json:"frozen,omitempty"`
	File     bool      `json:"file,omitempty"`
	Optional bool      `json:"optional,omitempty"` // skipped if it fails
}

// Landlock lists the ruleset's grants. It skips missing paths.
type Landlock struct {
	ABI     int      `json:"abi"`      // ABI version whose rights are handled
	Read    []string `json:"read"`     // read and execute
	Write   []string `json:"write"`    // everything
	Use     []string `json:"use"`      // read and write, for devices
	DenyNet bool     `json:"deny_net"` // denies TCP, and UDP if the kernel supports that
}

// Report is the answer to a Spec. Its descriptors are the listeners of Ports, SharedFolder, and the
// lent mounts. The supervisor keeps none of them open.
type Report struct {
	Failed  string   `json:"failed,omitempty"` // the failed step; "" if none failed
	Error   string   `json:"error,omitempty"`
	Errno   uint     `json:"errno,omitempty"`   // the kernel's number of the error, if any
	Skipped []string `json:"skipped,omitempty"` // failed optional mounts, with the reason
	PIDMax  bool     `json:"pid_max,omitempty"` // the namespace's own pid_max is set
}

// maxStreams bounds the descriptors of a Start. MaxPorts and MaxLent bound the ports and lent mounts of a
// Spec. MaxReported bounds the descriptors of a Report.
const (
	maxStreams  = 3
	MaxPorts    = 17
	MaxLent     = 200
	MaxReported = MaxPorts + 1 + MaxLent
)

// Request asks the supervisor for one thing. Exactly one field is set.
type Request struct {
	// Start comes with one descriptor for output and error, or with three for input, output and error.
	Start  *Start  `json:"start,omitempty"`
	Signal *Signal `json:"signal,omitempty"`
	End    uint64  `json:"end,omitempty"` // kills the rest of this command's group, and forgets it
	// Pause stops all processes until Resume; nothing starts meanwhile.
	Pause  bool `json:"pause,omitempty"`
	Resume bool `json:"resume,omitempty"`
	// Socket requests an unconnected TCP socket. Because it is made inside, it reaches only the commands'
	// network.
	Socket bool `json:"socket,omitempty"`
}

// Start asks for a command. Arguments and variables are bytes, because they need not be text.
type Start struct {
	ID   uint64   `json:"id"` // not 0, never used before
	Argv [][]byte `json:"argv"`
	Dir  string   `json:"dir"`
	Env  [][]byte `json:"env"`
	// Terminal marks the only descriptor as a terminal for all streams.
	Terminal bool `json:"terminal,omitempty"`
}

// Signal asks for a signal to a command's process group.
type Signal struct {
	ID     uint64 `json:"id"`
	Number int    `json:"number"`
}

// Event is a message of the supervisor: an answer to a Request, the exit of a command, or the end of all
// processes.
type Event struct {
	ID      uint64 `json:"id"`
	Started bool   `json:"started,omitempty"`
	Paused  bool   `json:"paused,omitempty"`  // answers Pause
	Socket  bool   `json:"socket,omitempty"`  // answers Socket, with the socket
	Error   string `json:"error,omitempty"`   // why the request failed
	Missing bool   `json:"missing,omitempty"` // the program of the command is missing
	Exited  bool   `json:"exited,omitempty"`
	Status  uint32 `json:"status,omitempty"` // wait status
	Empty   bool   `json:"empty,omitempty"`  // no started process lives; the last event
}

// Frame returns a message for the control socket: a length of four bytes, big endian, and JSON.
func Frame(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

// HeaderSize is the length of a frame's header.
const HeaderSize = 4

// BodySize returns the length of a frame's JSON from its header.
func BodySize(header []byte) int {
	return int(binary.BigEndian.Uint32(header))
}

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name {
		enter()
	}
}
