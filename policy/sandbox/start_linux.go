package sandbox

import (
	"runtime"
	"syscall"
)

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// starter starts commands from one thread that lives as long as the sandbox:
// the kernel sends the parent-death signal when the thread that started a
// command ends, and Go ends threads when it likes (golang.org/issue/27505).
type starter struct {
	requests chan startRequest
	ended    chan struct{}
}

type startRequest struct {
	start  func() error
	result chan error
}

func (s *starter) open() {
	s.requests = make(chan startRequest)
	s.ended = make(chan struct{})
	go s.serve()
}

func (s *starter) serve() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(s.ended)
	for request := range s.requests {
		request.result <- request.start()
	}
}

func (s *starter) start(start func() error) error {
	result := make(chan error, 1)
	s.requests <- startRequest{start, result}
	return <-result
}

func (s *starter) stop() {
	if s.requests == nil {
		return
	}
	close(s.requests)
	<-s.ended
	s.requests = nil
}
