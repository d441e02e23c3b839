// Package hooks owns the hook programs of a job or operator: selection, JSON form, sandbox and the
// meaning of answers. It fails closed: anything but a valid answer refuses. It does not know how
// the run uses a decision.
package hooks
