package record

import (
	"context"
	"os"
	"sync"
	"time"
)

const (
	// aliveFile has the time of the last sign of life, for long commands and answers without
	// events.
	aliveFile = StateFolder + "/alive"
	// aliveEvery is the interval of writing it. A kill loses less than that.
	aliveEvery = 2 * time.Second
	// aliveLayout is a time in UTC, always of one length.
	aliveLayout = "2006-01-02T15:04:05.000Z"
)

// Live starts to record signs of life.
func (r *Record) Live() {
	living, stop := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { r.beat(living) })
	r.rest = func() {
		stop()
		beats.Wait()
	}
}

// Rest stops Live.
func (r *Record) Rest() {
	if r.rest != nil {
		r.rest()
		r.rest = nil
	}
}

// beat writes aliveFile again and again while the run lives. Nothing is synced:
// after a loss of power the time since the last event may be missing.
func (d *Directory) beat(living context.Context) {
	ticks := time.NewTicker(aliveEvery)
	defer ticks.Stop()
	var f *os.File // made by the first beat: a short run pays nothing
	defer func() { _ = f.Close() }()
	for {
		select {
		case <-living.Done():
			return
		case now := <-ticks.C:
			if f == nil {
				f, _ = d.root.OpenFile(aliveFile, os.O_WRONLY|os.O_CREATE, 0o600)
			}
			_, _ = f.WriteAt([]byte(now.UTC().Format(aliveLayout)), 0) // without it the time counts up to the last event
		}
	}
}

// LastAlive returns the time in aliveFile, or zero.
func (d *Directory) LastAlive() time.Time {
	raw, err := d.Read(aliveFile)
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(aliveLayout, string(raw))
	return at
}
