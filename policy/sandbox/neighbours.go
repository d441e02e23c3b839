package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Neighbours are what a sandbox has to do with others. All of it needs namespaces.
type Neighbours struct {
	// Ports are listened at on the commands' loopback, 127.0.0.1: whoever opened the
	// sandbox answers there, by Listeners. They need a loopback of the run's own.
	Ports []int
	// Lend is how often the workspace as commands see it is lent to other sandboxes, by
	// Borrow, to be read there, and LendToWrite how often to be changed as these commands
	// may change it; of a workspace in an overlay.
	Lend, LendToWrite int
	// Borrowed is the workspace as another sandbox lends it, in place of the folder at its
	// path; nil for none. The caller closes it.
	Borrowed *os.File `json:"-"`
	// BorrowedFrom is the overlay of that, as Overlay names it: nobody mounts it anew while
	// this sandbox lives.
	BorrowedFrom string
	// User is whom commands take themselves for; nil for who they are. On the machine
	// they stay the user who started this program.
	User *User
}

// User is a user and a group by their numbers.
type User struct{ UID, GID int }

func (n Neighbours) any() bool {
	return len(n.Ports) > 0 || n.lends() > 0 || n.Borrowed != nil || n.User != nil
}

func (n Neighbours) lends() int { return n.Lend + n.LendToWrite }

// check says what of this can't be.
func (n Neighbours) check(network Network) error {
	switch {
	case len(n.Ports) > stage.MostPorts-1:
		return fmt.Errorf("a sandbox listens at %d ports at most", stage.MostPorts-1)
	case n.lends() > stage.MostLent:
		return fmt.Errorf("a workspace is lent %d times at most", stage.MostLent)
	case len(n.Ports) > 0 && network != NetworkLoopback && network != NetworkProxied:
		return fmt.Errorf("a sandbox with the network %q has no loopback of its own to listen on", network)
	}
	return nil
}

// errNoNeighbours is why what is not in namespaces has no neighbours.
var errNoNeighbours = errors.New("a sandbox without namespaces neither listens for others nor lends anything")

// Listeners are those at Options.Ports, in their order. The caller closes them; what it
// does not, Close does.
func (s *Sandbox) Listeners() ([]net.Listener, error) {
	if s.opened != nil {
		if err := s.opened(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners, nil
}

// Borrow gives the workspace as commands see it, for one other sandbox, which has it by
// Options.Borrowed; nil where it was lent as often as Options say. The caller closes it.
func (s *Sandbox) Borrow(toWrite bool) (*os.File, error) {
	if s.opened != nil {
		if err := s.opened(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := &s.lent
	if toWrite {
		from = &s.lentToWrite
	}
	if len(*from) == 0 {
		return nil, nil
	}
	lent := (*from)[0]
	*from = (*from)[1:]
	return lent, nil
}

// letGo closes what nobody took.
func (c *confinement) letGo() {
	for _, l := range c.listeners {
		_ = l.Close()
	}
	for _, mount := range slices.Concat(c.lent, c.lentToWrite) {
		_ = mount.Close()
	}
}
