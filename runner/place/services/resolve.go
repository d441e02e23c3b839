package services

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// resolvedService is a job's service with its user or addresses on this machine.
type resolvedService struct {
	job.Service
	name      string
	user      *sandbox.User
	addresses []netip.AddrPort // of an external service; empty for a started one
}

// isExternal reports whether the service runs already and agent-ci does not start it.
func (s resolvedService) isExternal() bool { return len(s.addresses) > 0 }

// CheckRunnable returns why a job's services cannot run with a level of confinement, or nil.
func CheckRunnable(ctx context.Context, j *job.Job, level sandbox.Level) error {
	_, err := resolveAll(ctx, j, level)
	return err
}

// resolveAll returns a job's services, sorted by name. An external service gets its addresses, and a service that
// the run starts gets its user. resolveAll fails if level, the confinement of this machine, cannot confine them.
func resolveAll(ctx context.Context, j *job.Job, level sandbox.Level) (all []resolvedService, err error) {
	if len(j.Services) == 0 {
		return nil, nil
	}
	if level != sandbox.LevelNamespaces && level != sandbox.LevelFull {
		return nil, outcome.Stopf(outcome.SandboxUnavailable, "network",
			"The job has services, which need network namespaces (confinement %s); allow user namespaces on this machine, use a policy.sandbox that confines, or remove the services.", level)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Services)) {
		resolved := resolvedService{Service: j.Services[name], name: name}
		if resolved.At != "" {
			resolved.addresses, err = resolveAddresses(ctx, name, resolved.At)
		} else {
			resolved.user, err = lookUpUser(name, resolved.User)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, resolved)
	}
	return all, nil
}

// resolveAddresses returns up to 8 addresses of the external service called name. at is its host and port. It
// fails if any of its addresses may not be used for a service.
func resolveAddresses(ctx context.Context, name, at string) (all []netip.AddrPort, err error) {
	refuse := func(why string) ([]netip.AddrPort, error) {
		return nil, outcome.Stopf(outcome.InvalidInput, "service",
			"The service %s can't be at %s: %s; give a loopback or a private address.", name, at, why)
	}
	where, err := form.ParseAddress(at)
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

// lookUpUser returns the user that a service runs as. name is a user name, or a number for both user and group.
// "" means the user who runs agent-ci, and gives nil. The job's check has refused the number 0.
func lookUpUser(service, name string) (*sandbox.User, error) {
	if name == "" {
		return nil, nil
	}
	if number, err := strconv.Atoi(name); err == nil {
		return &sandbox.User{UID: number, GID: number}, nil
	}
	unusable := outcome.Stopf(outcome.InvalidInput, "service",
		"The service %s can't use the user %s: this machine has no such user, or it is root; set another, or a number.", service, name)
	found, err := user.Lookup(name)
	if err != nil {
		return nil, unusable
	}
	uid, uidErr := strconv.Atoi(found.Uid)
	gid, gidErr := strconv.Atoi(found.Gid)
	if uidErr != nil || gidErr != nil || uid == 0 {
		return nil, unusable
	}
	return &sandbox.User{UID: uid, GID: gid}, nil
}
