// Package compare finds differences between jobs: keys of a recorded job that are more permissive
// than allowed, and keys that differ from the defaults.
package compare
