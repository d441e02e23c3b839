// Package attempts owns the attacks on a sandbox in the batteries, the attacked world, and the
// results. It does not know how commands are confined or run.
package attempts
