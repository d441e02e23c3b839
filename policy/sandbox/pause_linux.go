package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// stop stops all commands until resume is called. A cgroup also stops the supervisor.
func (c *confinement) stop() (resume func() error, err error) {
	if c.inside == nil || c.level == LevelLandlock {
		return nil, errors.New("they run outside of namespaces")
	}
	if c.group != nil {
		if err := c.group.freeze(); !errors.Is(err, fs.ErrNotExist) {
			return c.group.thaw, err
		}
	}
	return c.inside.resume, c.inside.pause()
}

// pause has the supervisor stop all processes.
func (in *inside) pause() error {
	if err := in.send(stage.Request{Pause: true}); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	patience := time.NewTimer(in.startWait)
	defer patience.Stop()
	select {
	case err := <-in.paused:
		return err
	case <-in.gone:
		return errGone
	case <-patience.C:
		in.giveUp()
		return fmt.Errorf("%w: it was ended because it did not stop the commands within %s%s", errGone, in.startWait, tooSlow)
	}
}

func (in *inside) resume() error { return in.send(stage.Request{Resume: true}) }

// errorOf returns an event's error.
func errorOf(e stage.Event) error {
	if e.Error == "" {
		return nil
	}
	return errors.New(e.Error)
}
