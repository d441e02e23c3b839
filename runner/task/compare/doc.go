// Package compare owns what tells jobs apart: where a recorded job allows more than another one, and which
// keys a job sets.
package compare
