package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// stop stops all commands until resume is called. A cgroup also stops the supervisor. Without a cgroup, or
// if the kernel cannot freeze one, the supervisor stops the commands.
func (c *confinement) stop() (resume func() error, err error) {
	if c.conn == nil || c.level == LevelLandlock {
		return nil, errors.New("they run outside of namespaces")
	}
	if c.group != nil {
		if err := c.group.Freeze(); !errors.Is(err, fs.ErrNotExist) { // nil, too
			return c.group.Thaw, err
		}
	}
	return c.conn.resume, c.conn.pause()
}

// pause makes the supervisor stop all processes. It kills a supervisor that does not answer.
func (conn *supervisorConn) pause() error {
	if err := conn.send(stage.Request{Pause: true}); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case err := <-conn.pauseReplies:
		return err
	case <-conn.supervisorExited:
		return errGone
	case <-time.After(conn.startWait):
		conn.giveUp()
		return fmt.Errorf("%w: it was ended because it did not stop the commands within %s%s", errGone, conn.startWait, tooSlowHint)
	}
}

func (conn *supervisorConn) resume() error { return conn.send(stage.Request{Resume: true}) }

// errorOf returns an event's error.
func errorOf(e stage.Event) error {
	if e.Error == "" {
		return nil
	}
	return errors.New(e.Error)
}
