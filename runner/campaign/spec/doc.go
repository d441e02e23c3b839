// Package spec owns the campaign file: its keys, its targets and windows, and the job that it has with
// values of a target in its texts. It refuses to know how targets are found, run and booked.
package spec
