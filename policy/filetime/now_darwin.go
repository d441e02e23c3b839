package filetime

import "time"

// now returns the time that a file would get if it changed now.
func now() time.Time { return time.Now() }
