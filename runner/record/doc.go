// Package record owns the record of a run: its directory, transcript, warnings, command logs,
// digests, and the view of them. It removes the run's secrets from everything. It does not know
// repositories, forges, agents, or the meaning of events for the running run.
package record
