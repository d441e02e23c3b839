// Package services starts the services of a job for the commands of a sandbox, waits until they are
// ready, and forwards connections to them. It also forwards to services that run already.
package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// notReady is the outcome's reason if a service was not started, prepared or ready in time.
const notReady = "service_not_ready"

// Services are the services of a run's job. The zero value has none.
type Services struct {
	record   *record.Record
	all      []resolvedService // sorted by name
	logNames sync.Mutex        // guards the choice of names for logs
}

// Resolve checks the job's services and their users before anything costs money. It resolves the
// names of external services once for the run.
func (s *Services) Resolve(ctx context.Context, rec *record.Record, j *job.Job, level sandbox.Level) (err error) {
	s.record = rec
	s.all, err = resolveAll(ctx, j, level)
	return err
}

// IsEmpty reports whether the job has no services.
func (s *Services) IsEmpty() bool { return len(s.all) == 0 }

// Ports returns the ports of all services.
func (s *Services) Ports() (ports []int) {
	for _, svc := range s.all {
		ports = append(ports, svc.Port)
	}
	return ports
}

// StartedCount returns how many services agent-ci starts.
func (s *Services) StartedCount() (n int) {
	for _, svc := range s.all {
		if !svc.isExternal() {
			n++
		}
	}
	return n
}

// DescribeToModel describes the services to the model. It returns "" without any.
func (s *Services) DescribeToModel() string {
	var all []string
	for _, svc := range s.all {
		all = append(all, fmt.Sprintf("%s at 127.0.0.1:%d", svc.name, svc.Port))
	}
	return strings.Join(all, ", ")
}

// Commands describes the commands that use services.
type Commands struct {
	Name string           // of the commands in events
	Box  *sandbox.Sandbox // of the commands
	Dir  string           // the folder where services start
	Env  []string         // of the commands; variables of a service replace it
	// LendsTree means that services see the work tree of Box. Otherwise it is a folder.
	LendsTree bool
	// OpenSandbox opens a service's sandbox over an empty scratch folder. tree is the lent work tree,
	// or nil. A nil user is the real user. Errors have an outcome.
	OpenSandbox func(ctx context.Context, scratch string, tree *os.File, as *sandbox.User) (*sandbox.Sandbox, error)
	// ScratchFolder is the path of the folder with the scratch folders.
	ScratchFolder string
}

// TrySandboxes opens and closes each service's sandbox, to see whether that works.
func (s *Services) TrySandboxes(ctx context.Context, c Commands) error {
	all := s.newServices(c)
	for _, svc := range all {
		err := svc.openSandbox(ctx)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			err = outcome.Stopf(outcome.SandboxUnavailable, "network",
				"The sandbox of the service %s can't be opened here: %s; take services out of the job.", svc.name, outcome.MessageOf(err)).Because(err)
		}
		return errors.Join(err, all.Close())
	}
	return all.Close()
}

// newServices returns the services for commands, not started yet.
func (s *Services) newServices(c Commands) (all Running) {
	for _, resolved := range s.all {
		all = append(all, &service{
			resolvedService: resolved, record: s.record, commands: c, scratch: "service-" + resolved.name + "-" + c.Name,
			began: time.Now(), stopping: make(chan struct{}),
		})
	}
	return all
}

// Running are the services of one sandbox. Nil means none.
type Running []*service

// Start starts new services for commands and waits until all are ready. If a service does not get
// ready, IsNotReady is true for the error.
func (s *Services) Start(ctx context.Context, c Commands) (Running, error) {
	listeners, err := c.Box.Listeners()
	if err != nil {
		return nil, err
	}
	all := s.newServices(c)
	for i, svc := range all {
		svc.listener = listeners[i]
	}
	for _, svc := range all { // before the first start: a sidecar borrows too
		if err := svc.borrowTree(); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	for _, svc := range all {
		if err := svc.start(ctx, &s.logNames); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	for _, svc := range all {
		if err := svc.awaitReadyAndInit(ctx); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	return all, nil
}

// IsNotReady reports whether err says that a service did not get ready.
func IsNotReady(err error) bool {
	var stop *outcome.Stop
	return errors.As(err, &stop) && stop.Reason == notReady
}

// DescribeExited returns a sentence for each service that has exited, with the name of its log.
func (all Running) DescribeExited() (words []string) {
	for _, svc := range all {
		if svc.hasExited() {
			words = append(words, fmt.Sprintf("the service %s has ended; see %s", svc.name, svc.logName))
		}
	}
	return words
}

// Close stops all services. The error names processes that survived.
func (all Running) Close() (err error) {
	for _, svc := range slices.Backward(all) {
		err = errors.Join(err, svc.close())
	}
	return err
}
