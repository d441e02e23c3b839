package confine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/policy/forward"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// serviceNotReady is the outcome's reason if a service was not started, prepared or ready in time.
const serviceNotReady = "service_not_ready"

// resolvedService is a job's service with its user or addresses on this machine.
type resolvedService struct {
	job.Service
	name      string
	user      *sandbox.User
	addresses []netip.AddrPort // of an external service; empty for a started one
}

// isExternal reports whether the service runs already and agent-ci does not start it.
func (s resolvedService) isExternal() bool { return len(s.addresses) > 0 }

// resolveServices checks the job's services and their users before anything costs money. It
// resolves the names of external services once for the run.
func (s *Sandboxes) resolveServices(ctx context.Context) (err error) {
	if s.services, err = s.resolvedServices(ctx, s.level()); err != nil || len(s.services) == 0 {
		return err
	}
	place := Place{Scratch: ProbeScratch, Services: true}
	defer s.Remove(place) // what can't be removed is removed with the run's working files
	box, err := s.Open(ctx, place)
	if err != nil {
		return err
	}
	return errors.Join(s.trySandboxes(ctx, box, place), box.Close())
}

// trySandboxes opens and closes each service's sandbox, to see whether that works.
func (s *Sandboxes) trySandboxes(ctx context.Context, box *sandbox.Sandbox, p Place) error {
	running, err := s.newServices(box, p, nil)
	if err != nil {
		return err
	}
	all := &Services{running}
	for _, one := range all.running {
		err := one.open(ctx, p)
		if err != nil && ctx.Err() == nil {
			err = outcome.Stopf(outcome.SandboxUnavailable, "network",
				"The sandbox of the service %s can't be opened here: %s; take services out of the job.", one.name, outcome.MessageOf(err)).Because(err)
		}
		if err != nil {
			return errors.Join(err, all.Close())
		}
	}
	return all.Close()
}

// newServices returns a place's services, not started yet. listeners is empty, or has one listener
// per service.
func (s *Sandboxes) newServices(box *sandbox.Sandbox, p Place, listeners []net.Listener) (all []*service, err error) {
	for i, settled := range s.services {
		one := &service{resolvedService: settled, boxes: s, scratch: p.Scratch, began: time.Now(), stopping: make(chan struct{})}
		if len(listeners) > 0 {
			one.listener = listeners[i]
		}
		if !settled.isExternal() && s.Overlaid() {
			if one.borrowed, err = box.Borrow(false); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// TryServices returns why the job's services cannot run with a level of confinement, or nil.
func (s *Sandboxes) TryServices(ctx context.Context, level sandbox.Level) error {
	_, err := s.resolvedServices(ctx, level)
	return err
}

// resolvedServices returns the job's services by name, with addresses or users. It fails if the
// machine cannot confine them.
func (s *Sandboxes) resolvedServices(ctx context.Context, level sandbox.Level) (all []resolvedService, err error) {
	if len(s.Job.Services) == 0 {
		return nil, nil
	}
	if level != sandbox.LevelNamespaces && level != sandbox.LevelFull {
		return nil, outcome.Stopf(outcome.SandboxUnavailable, "network",
			"The job has services, which need network namespaces (confinement %s); allow user namespaces on this machine, use a policy.sandbox that confines, or remove the services.", level)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Job.Services)) {
		settled := resolvedService{Service: s.Job.Services[name], name: name}
		if settled.At != "" {
			settled.addresses, err = resolveService(ctx, name, settled.At)
		} else {
			settled.user, err = userOf(name, settled.User)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, settled)
	}
	return all, nil
}

// resolveService returns the addresses of an external service. All must be fit for a service.
func resolveService(ctx context.Context, name, at string) (all []netip.AddrPort, err error) {
	refuse := func(why string) ([]netip.AddrPort, error) {
		return nil, outcome.Stopf(outcome.InvalidInput, "service",
			"The service %s can't be at %s: %s; give a loopback or a private address.", name, at, why)
	}
	where, err := form.SplitAddress(at)
	if err != nil {
		return refuse("it is no address")
	}
	const wait = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", where.Host)
	if err != nil || len(addresses) == 0 {
		return refuse("its name is not known")
	}
	for _, address := range addresses {
		if why := reach.UnusableForService(address); why != "" {
			return refuse("it is " + why)
		}
		all = append(all, netip.AddrPortFrom(address.Unmap(), where.Port))
	}
	const most = 8
	return all[:min(len(all), most)], nil
}

// userOf returns the user that a service runs as, or nil for the real user.
func userOf(service, name string) (*sandbox.User, error) {
	if name == "" {
		return nil, nil
	}
	if number, err := strconv.Atoi(name); err == nil {
		return &sandbox.User{UID: number, GID: number}, nil
	}
	found, err := user.Lookup(name)
	as := new(sandbox.User)
	if err == nil {
		as.UID, err = strconv.Atoi(found.Uid)
	}
	if err == nil {
		as.GID, err = strconv.Atoi(found.Gid)
	}
	if err != nil || as.UID == 0 {
		return nil, outcome.Stopf(outcome.InvalidInput, "service",
			"The service %s can't use the user %s: this machine has no such user, or it is root; set another, or a number.", service, name)
	}
	return as, nil
}

// findsServices reports whether a place's commands can reach the job's services.
func (s *Sandboxes) findsServices(p Place) bool {
	return p.Services && len(s.services) > 0 && (p.Network.IsZero() || p.Network.Listed() || p.Network.Mode == string(sandbox.NetworkLoopback))
}

// neighbours returns the listeners of a place, and how often it lends its workspace to services and
// sidecars.
func (s *Sandboxes) neighbours(p Place, overlaid bool) (n sandbox.Sharing) {
	if p.LendsWorkspace && overlaid {
		n.Lend, n.LendToWrite = s.countLentMounts()
	}
	if !s.findsServices(p) {
		return n
	}
	for _, service := range s.services {
		n.Ports = append(n.Ports, service.Port)
		if overlaid && !service.isExternal() {
			n.Lend++
		}
	}
	return n
}

// Services are the services of one sandbox. Nil means none.
type Services struct {
	running []*service
}

// Serve starts new services for a place's sandbox and waits until all are ready. dir is the
// commands' folder. If a service does not get ready, Unready is true for the error.
func (s *Sandboxes) Serve(ctx context.Context, box *sandbox.Sandbox, p Place, dir string) (*Services, error) {
	if !s.findsServices(p) {
		return nil, nil
	}
	listeners, err := box.Listeners()
	if err != nil {
		return nil, err
	}
	running, err := s.newServices(box, p, listeners)
	if err != nil {
		return nil, err
	}
	all := &Services{running}
	for _, one := range all.running {
		if err := one.start(ctx, p, dir); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	for _, one := range all.running {
		if err := one.awaitReadyAndInit(ctx); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	return all, nil
}

// Unready reports whether err says that a service did not get ready.
func Unready(err error) bool {
	var stop *outcome.Stop
	return errors.As(err, &stop) && stop.Reason == serviceNotReady
}

// ended returns a sentence for each service that has exited, with its log.
func (all *Services) ended() (words []string) {
	if all == nil {
		return nil
	}
	for _, one := range all.running {
		if one.hasEnded() {
			words = append(words, fmt.Sprintf("the service %s has ended; see %s", one.name, one.logName))
		}
	}
	return words
}

// Close stops all services. The error names processes that survived.
func (all *Services) Close() (err error) {
	if all == nil {
		return nil
	}
	for _, one := range slices.Backward(all.running) {
		err = errors.Join(err, one.close())
	}
	return err
}

// servicesWords describes the services to the model, or returns "".
func (s *Sandboxes) servicesWords() string {
	var all []string
	for _, service := range s.services {
		all = append(all, fmt.Sprintf("%s at 127.0.0.1:%d", service.name, service.Port))
	}
	return strings.Join(all, ", ")
}

// connect connects to the service at its port.
func (s *service) connect(ctx context.Context) (net.Conn, error) {
	return s.connectTo(ctx, s.Port)
}

// connectTo connects to a port of the service. For an external service it tries all addresses.
func (s *service) connectTo(ctx context.Context, port int) (net.Conn, error) {
	if !s.isExternal() {
		return s.box.Dial(ctx, port)
	}
	var failed error
	for _, address := range s.addresses {
		conn, err := dialSoon(ctx, address)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// dialSoon connects within a few seconds, so that time remains for other addresses.
func dialSoon(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	const wait = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, "tcp", address.String())
}

// startForwarding lets commands reach the service from now on.
func (s *service) startForwarding() { s.forwarder = forward.Start(s.listener, s.connect) }
