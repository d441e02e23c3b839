package filetime

import "time"

// Now returns the time that a file would get if it changed now.
func Now() time.Time { return time.Now() }
