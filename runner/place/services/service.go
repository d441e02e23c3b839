package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/forward"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// service is one service for the commands of a sandbox: started by agent-ci, or external.
type service struct {
	resolvedService
	record    *record.Record
	commands  Commands // that use it
	listener  net.Listener
	began     time.Time
	forwarder *forward.Forwarder // nil until the service is ready

	// The fields below are used only for a service that agent-ci starts.
	scratch  string   // name of its scratch folder
	tree     *os.File // the commands' work tree, if they lend it
	box      *sandbox.Sandbox
	process  *sandbox.Process
	logName  string
	logFile  *os.File
	log      *record.LogWriter
	stopping chan struct{} // closed before the service is stopped
	watch    sync.WaitGroup
}

// DataFolder is the folder in a service's /tmp for its data.
const DataFolder = "service"

// openSandbox opens a service's sandbox with an empty data folder. An external service has none.
func (s *service) openSandbox(ctx context.Context) (err error) {
	if s.isExternal() {
		return nil
	}
	s.box, err = s.commands.OpenSandbox(ctx, s.scratch, s.tree, s.user)
	return err
}

// borrowTree borrows the work tree for a service that agent-ci starts.
func (s *service) borrowTree() (err error) {
	if s.commands.LendsTree && !s.isExternal() {
		s.tree, err = s.commands.Box.Borrow(false)
	}
	return err
}

// start starts a service that is not external. It locks logNames while it chooses the log's name.
func (s *service) start(ctx context.Context, logNames *sync.Mutex) (err error) {
	if s.isExternal() {
		return nil
	}
	if err := s.openSandbox(ctx); err != nil {
		return err
	}
	if err := s.openLog(logNames); err != nil {
		return err
	}
	if s.process, err = s.box.Start(s.newCommand(s.Run, s.log)); err != nil {
		return s.notReadyStop(transcript.ServiceNotReady, "it could not be started: "+err.Error())
	}
	return nil
}

// environment returns a service's environment. Its own variables replace the commands' ones.
func (s *service) environment() []string {
	variables := maps.Clone(s.Env)
	if variables == nil {
		variables = make(map[string]string)
	}
	variables["SERVICE_DATA"], variables["SERVICE_PORT"] = "/tmp/"+DataFolder, fmt.Sprint(s.Port)
	env := slices.DeleteFunc(slices.Clone(s.commands.Env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, replaced := variables[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

// openLog makes a log for a service and its commands, under a name that is not in use.
func (s *service) openLog(logNames *sync.Mutex) (err error) {
	logNames.Lock()
	defer logNames.Unlock()
	s.logName = record.LogName("service", 1, s.name)
	for n := 2; s.record.Has(s.logName); n++ {
		s.logName = record.LogName("service", n, s.name)
	}
	if s.logFile, err = s.record.Create(s.logName); err != nil {
		return fmt.Errorf("make log of the service %s: %w", s.name, err)
	}
	s.log = record.NewLogWriter(s.logFile, record.ServiceLogBytes, s.record.Redact)
	fmt.Fprintf(s.log, "agent-ci: %s for %s\n", s.name, s.commands.Name)
	return nil
}

func (s *service) newCommand(run string, output io.Writer) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-e", "-c", run}, Dir: s.commands.Dir, Env: s.environment(), Output: output}
}

// recordState records a service's state in the transcript, with the exit code, or nil if it has not exited.
func (s *service) recordState(state, why string, exitCode *int) error {
	event := transcript.Service{
		Name: s.name, Sandbox: s.commands.Name, State: state, Port: s.Port, Reason: why, Seconds: time.Since(s.began).Seconds(), Log: s.logName, ExitCode: exitCode,
	}
	if s.isExternal() {
		event.ExternalAddress = s.addresses[0].String()
	}
	return s.record.Append(event)
}

// exited returns a channel that is closed when the service exits. It is nil for an external service.
func (s *service) exited() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

func (s *service) hasExited() bool { return s.process != nil && s.process.Exited() }

func (s *service) exitCode() int {
	status, _ := s.process.Wait()
	return status.ExitCode
}

// watchForExit waits for an exit of the service while it is in use. It then refuses connections and warns.
func (s *service) watchForExit() {
	select {
	case <-s.stopping:
		return
	case <-s.process.Done():
	}
	s.forwarder.Refuse()
	why := fmt.Sprintf("it ended with exit status %d while it was in use", s.exitCode())
	if lines := s.lastLines(); lines != "" {
		why += "; its last lines: " + lines
	}
	_ = s.recordState(transcript.ServiceEnded, why, new(s.exitCode())) // an error does not matter: a failing transcript is reported at the end of the run
	s.record.Warn("service_ended", "The service %s for %s ended with exit status %d while it was in use; connections to it were refused from then on. See %s.", s.name, s.commands.Name, s.exitCode(), s.logName)
}

// close stops the service and removes its files.
func (s *service) close() (err error) {
	close(s.stopping)
	s.watch.Wait()
	if s.forwarder != nil {
		s.forwarder.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.box != nil {
		err = s.box.Close()
	}
	if s.tree != nil {
		err = errors.Join(err, s.tree.Close())
	}
	if s.process != nil {
		_, _ = s.process.Wait()
	}
	if s.logFile != nil {
		s.log.Flush()
		err = errors.Join(err, s.logFile.Close())
	}
	if !s.isExternal() {
		err = errors.Join(err, sandbox.RemoveScratch(filepath.Join(s.commands.ScratchFolder, s.scratch)))
	}
	return err
}
