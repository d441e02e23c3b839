// Package hooks owns the programs that a job, or an operator, has asked at points of a run:
// whom to ask, in which form of JSON, in which sandbox, and what an answer decides. It fails
// closed: anything but a clean answer refuses. It knows nothing of what the run does with a
// decision.
package hooks
