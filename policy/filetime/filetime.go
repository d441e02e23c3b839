// Package filetime reads the clock that gives files their times. On Linux it is up to 10 ms behind time.Now, so a file
// that changes now can have an earlier time than now.
package filetime

import "time"

// Mark returns a time between those of all files changed before the call and those of all files changed after it. It
// waits until the clock of files has reached the present: up to 10 ms on Linux.
func Mark() time.Time {
	began := time.Now()
	for {
		next := Now()
		wasSetBack := time.Since(began) > time.Second // by a clock that goes on in any case
		if next.After(began) || wasSetBack {
			return next.Add(-1)
		}
		time.Sleep(500 * time.Microsecond)
	}
}
