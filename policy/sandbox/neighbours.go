package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Sharing describes what a sandbox shares with others. All of it requires namespaces.
type Sharing struct {
	// Ports lists ports on the commands' loopback, 127.0.0.1. Listeners returns a listener for each.
	// They require NetworkLoopback or NetworkProxied.
	Ports []int
	// LendToRead and LendToWrite count the mounts of an overlaid workspace lent to other sandboxes by
	// Borrow, to read or to change.
	LendToRead, LendToWrite int
	// Borrowed is a workspace lent by Borrow of another sandbox. Commands see it at the workspace's
	// path. Nil means none. The caller closes it.
	Borrowed *os.File `json:"-"`
	// BorrowedFrom is the lent workspace's overlay, like Overlay. Nobody may mount it again while
	// this sandbox lives.
	BorrowedFrom string
	// User is the user seen by commands; nil is the real one. Outside, they stay the user of this
	// process.
	User *User
}

// User is a user and a group by their numbers.
type User struct{ UID, GID int }

func (sharing Sharing) sharesAnything() bool {
	return len(sharing.Ports) > 0 || sharing.lentCount() > 0 || sharing.Borrowed != nil || sharing.User != nil
}

func (sharing Sharing) lentCount() int { return sharing.LendToRead + sharing.LendToWrite }

// validate returns an error for too many ports or mounts, and for ports without an own loopback.
func (sharing Sharing) validate(network Network) error {
	switch {
	case len(sharing.Ports) > stage.MaxPorts-1:
		return fmt.Errorf("a sandbox listens at %d ports at most", stage.MaxPorts-1)
	case sharing.lentCount() > stage.MaxLent:
		return fmt.Errorf("a workspace is lent %d times at most", stage.MaxLent)
	case len(sharing.Ports) > 0 && network != NetworkLoopback && network != NetworkProxied:
		return fmt.Errorf("a sandbox with the network %q has no loopback of its own to listen on", network)
	}
	return nil
}

// errSharingNeedsNamespaces explains why a sandbox without namespaces has no neighbours.
var errSharingNeedsNamespaces = errors.New("a sandbox without namespaces neither listens for others nor lends anything")

// Listeners returns the listeners at Options.Ports, in order. The caller closes them; Close closes
// the rest.
func (s *Sandbox) Listeners() ([]net.Listener, error) {
	if err := s.ensureOpen(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners, nil
}

// Borrow returns a mount of the commands' workspace, for Options.Borrowed of one other sandbox. It
// returns nil when all mounts of LendToRead, or with toWrite of LendToWrite, are lent. The caller closes it.
func (s *Sandbox) Borrow(toWrite bool) (*os.File, error) {
	if err := s.ensureOpen(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	available := &s.readLoans
	if toWrite {
		available = &s.writeLoans
	}
	if len(*available) == 0 {
		return nil, nil
	}
	lent := (*available)[0]
	*available = (*available)[1:]
	return lent, nil
}

// closeUnused closes the listeners and mounts that still belong to the sandbox.
func (c *confinement) closeUnused() {
	for _, l := range c.listeners {
		_ = l.Close()
	}
	for _, mount := range slices.Concat(c.readLoans, c.writeLoans) {
		_ = mount.Close()
	}
}
