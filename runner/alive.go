package runner

import (
	"os"
	"time"
)

const (
	// aliveFile has the time at which the run last lived, for what it does without
	// an event: a command or an answer that takes long.
	aliveFile = stateFolder + "/alive"
	// aliveEvery is how often it is written; a kill loses less than that.
	aliveEvery = 2 * time.Second
	// aliveLayout is a time in UTC, always of one length.
	aliveLayout = "2006-01-02T15:04:05.000Z"
)

// pulse writes aliveFile again and again until it is stopped. Nothing is synced:
// after a loss of power the time since the last event may be missing.
type pulse struct {
	stop, done chan struct{}
}

func (d *directory) beginPulse() *pulse {
	p := &pulse{make(chan struct{}), make(chan struct{})}
	go p.beat(d)
	return p
}

func (p *pulse) beat(d *directory) {
	defer close(p.done)
	ticks := time.NewTicker(aliveEvery)
	defer ticks.Stop()
	var f *os.File // made by the first beat: a short run pays nothing
	defer func() { _ = f.Close() }()
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticks.C:
			if f == nil {
				f, _ = d.root.OpenFile(aliveFile, os.O_WRONLY|os.O_CREATE, 0o600)
			}
			_, _ = f.WriteAt([]byte(now.UTC().Format(aliveLayout)), 0) // without it the time counts up to the last event
		}
	}
}

// endPulse stops the pulse, where there is one, and waits for it.
func (r *run) endPulse() {
	if r.pulse == nil {
		return
	}
	close(r.pulse.stop)
	<-r.pulse.done
	r.pulse = nil
}

// lastAlive is the time in aliveFile; zero where there is none.
func (d *directory) lastAlive() time.Time {
	raw, err := d.read(aliveFile)
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(aliveLayout, string(raw))
	return at
}
