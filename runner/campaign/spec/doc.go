// Package spec owns the campaign file: its keys, targets and windows, and the job template with placeholders
// for a target's values. It does not know how targets are found, run and booked.
package spec
