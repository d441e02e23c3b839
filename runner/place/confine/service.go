package confine

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
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// service is one service of a sandbox: started by agent-ci, or external.
type service struct {
	resolvedService
	boxes     *Sandboxes
	scratch   string // scratch folder of the commands that use it
	listener  net.Listener
	began     time.Time
	forwarder *forward.Forwarder // nil until the service is ready

	// The fields below are set only for a service that agent-ci starts.
	borrowed *os.File // the commands' workspace, if it is an overlay
	place    Place
	box      *sandbox.Sandbox
	dir      string
	env      []string
	process  *sandbox.Process
	logFile  *os.File
	logName  string
	log      *record.LogWriter
	stopping chan struct{} // closed before the service is stopped
	watch    sync.WaitGroup
}

// serviceData is the folder in a service's /tmp for its data.
const serviceData = "service"

// open opens a service's sandbox with an empty data folder. An external service has none.
func (svc *service) open(ctx context.Context, p Place) (err error) {
	if svc.isExternal() {
		return nil
	}
	s := svc.boxes
	svc.place = Place{Scratch: "service-" + svc.name + "-" + p.Scratch, Root: p.Root}
	if err := s.removeScratch(svc.place); err != nil { // left by a killed run
		return err
	}
	if _, err := s.Record.MakeFolder(filepath.Join(ScratchFolder, svc.place.Scratch, "tmp", serviceData)); err != nil {
		return err
	}
	svc.box, err = s.openService(ctx, svc.options(p))
	return err
}

// start starts a service. It does nothing for an external one.
func (s *service) start(ctx context.Context, p Place, dir string) (err error) {
	if s.isExternal() {
		return nil
	}
	if err := s.open(ctx, p); err != nil {
		return err
	}
	s.dir, s.env = dir, s.environment(p)
	if err := s.openLog(); err != nil {
		return err
	}
	if s.process, err = s.box.Start(s.command(s.Run, s.log)); err != nil {
		return s.notReadyStop(transcript.ServiceNotReady, "it could not be started: "+err.Error())
	}
	return nil
}

// openService opens a sandbox. Errors have an outcome.
func (s *Sandboxes) openService(ctx context.Context, o sandbox.Options) (*sandbox.Sandbox, error) {
	box, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, openFailure(o, err)
	}
	return box, nil
}

// options returns the options of a service's sandbox.
func (svc *service) options(p Place) sandbox.Options {
	s, seen := svc.boxes, p
	seen.Scratch = svc.place.Scratch
	f := s.folders(seen)
	// The borrowed workspace already has what setup commands changed in the user's folder.
	f.Mode, f.EarlierScratch, f.Readable = grants.ReadOnly, nil, nil
	o := sandbox.Options{Network: sandbox.NetworkLoopback, At: s.level()}
	if svc.borrowed != nil {
		o.Borrowed, o.BorrowedFrom = svc.borrowed, s.overlayFolderOf(p)
		f.Overlay, f.LowerLayers, f.Git, f.RemoveHidden, f.BorrowedFolders = "", nil, "", false, nil
	}
	o.Folders, o.User = f, svc.user
	return o
}

// environment returns a service's environment. Its own variables replace the commands' ones.
func (s *service) environment(p Place) []string {
	own := maps.Clone(s.Env)
	if own == nil {
		own = make(map[string]string)
	}
	own["SERVICE_DATA"], own["SERVICE_PORT"] = "/tmp/"+serviceData, fmt.Sprint(s.Port)
	env := slices.DeleteFunc(s.boxes.envForTree(s.boxes.SandboxPath(p)), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, is := own[name]
		return is
	})
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return env
}

// openLog makes a log for a service and its commands, under a name that is not in use.
func (s *service) openLog() (err error) {
	s.boxes.logNames.Lock()
	defer s.boxes.logNames.Unlock()
	for n := 1; s.logName == "" || s.boxes.Record.Has(s.logName); n++ {
		s.logName = record.LogName("service", n, s.name)
	}
	if s.logFile, err = s.boxes.Record.Create(s.logName); err != nil {
		return fmt.Errorf("make log of the service %s: %w", s.name, err)
	}
	s.log = record.NewLogWriter(s.logFile, record.ServiceLog, s.boxes.Record.Redact)
	fmt.Fprintf(s.log, "agent-ci: %s for %s\n", s.name, s.scratch)
	return nil
}

func (s *service) command(run string, output io.Writer) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-e", "-c", run}, Dir: s.dir, Env: s.env, Output: output}
}

// recordState records a service's state in the transcript, with its exit status if ended is true.
func (s *service) recordState(state, why string, ended bool) error {
	event := transcript.Service{
		Name: s.name, By: s.scratch, State: state, Port: s.Port, Why: why, Seconds: time.Since(s.began).Seconds(), Log: s.logName,
	}
	if s.isExternal() {
		event.At = s.addresses[0].String()
	}
	if ended {
		code := s.exitCode()
		event.ExitCode = &code
	}
	return s.boxes.Record.Append(transcript.TypeService, event)
}

// ended returns a channel that is closed when the service exits. It is nil for an external service.
func (s *service) ended() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

func (s *service) hasEnded() bool {
	select {
	case <-s.ended():
		return true
	default:
		return false
	}
}

func (s *service) exitCode() int {
	status, _ := s.process.Wait()
	return status.ExitCode
}

// watchEnd reports it if the service exits early. Afterwards connections to it are refused.
func (s *service) watchEnd() {
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
	_ = s.recordState(transcript.ServiceEnded, why, true) // an error does not matter: a failing transcript is reported at the end of the run
	s.boxes.Record.Warn("service_ended", "The service %s for %s ended with exit status %d while it was in use; connections to it were refused from then on. See %s.", s.name, s.scratch, s.exitCode(), s.logName)
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
	if s.borrowed != nil {
		err = errors.Join(err, s.borrowed.Close())
	}
	if s.process != nil {
		_, _ = s.process.Wait()
	}
	if s.logFile != nil {
		s.log.Flush()
		err = errors.Join(err, s.logFile.Close())
	}
	if s.place.Scratch != "" {
		err = errors.Join(err, s.boxes.removeScratch(s.place))
	}
	return err
}

// removeScratch removes a service's scratch folder. The place's root stays, because it belongs to
// the commands.
func (s *Sandboxes) removeScratch(p Place) error { return sandbox.RemoveScratch(s.scratch(p)) }
