package job

import (
	"fmt"
	"time"
)

// Duration is a length of time, written as text: "90s", "10m", "1h30m".
type Duration time.Duration

// String is the duration as the time package writes it, "10m0s".
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText is the same text as String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("parse duration %q: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
