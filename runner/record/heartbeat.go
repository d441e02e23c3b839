package record

import (
	"context"
	"os"
	"sync"
	"time"
)

const (
	// heartbeatFile has the time of the last sign of life. Long commands and answers write no
	// events.
	heartbeatFile = StateFolder + "/alive"
	// heartbeatInterval is the time between two signs of life. A killed run loses less than that.
	heartbeatInterval = 2 * time.Second
	// heartbeatLayout is the layout of a time in UTC. All times have the same length.
	heartbeatLayout = "2006-01-02T15:04:05.000Z"
)

// StartHeartbeat begins to write signs of life.
func (r *Record) StartHeartbeat() {
	living, stop := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { r.writeHeartbeats(living) })
	r.stopHeartbeat = func() {
		stop()
		beats.Wait()
	}
}

// StopHeartbeat ends what StartHeartbeat began.
func (r *Record) StopHeartbeat() {
	if r.stopHeartbeat != nil {
		r.stopHeartbeat()
		r.stopHeartbeat = nil
	}
}

// writeHeartbeats writes heartbeatFile regularly until living ends. It does not sync: after a power
// loss, the time since the last event may be missing.
func (d *Directory) writeHeartbeats(living context.Context) {
	ticks := time.NewTicker(heartbeatInterval)
	defer ticks.Stop()
	var f *os.File // made at the first tick, so a short run has no cost
	defer func() { _ = f.Close() }()
	for {
		select {
		case <-living.Done():
			return
		case now := <-ticks.C:
			if f == nil {
				f, _ = d.root.OpenFile(heartbeatFile, os.O_WRONLY|os.O_CREATE, 0o600)
			}
			_, _ = f.WriteAt([]byte(now.UTC().Format(heartbeatLayout)), 0) // without it, the run's time counts up to the last event
		}
	}
}

// LastHeartbeat returns the time of the last sign of life, or the zero time if there is none.
func (d *Directory) LastHeartbeat() time.Time {
	raw, err := d.Read(heartbeatFile)
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(heartbeatLayout, string(raw))
	return at
}
