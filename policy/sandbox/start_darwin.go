package sandbox

import (
	"syscall"
	"time"
)

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

type starter struct{}

func (starter) open()                          {}
func (starter) start(start func() error) error { return start() }
func (starter) stop()                          {}

func adoptOrphans()                {}
func reapGroup(int)                {}
func endOrphans(time.Duration) int { return 0 }
