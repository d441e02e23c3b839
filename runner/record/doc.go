// Package record owns the record of a run: its directory, transcript, warnings, command logs,
// digests, and the view of them. It redacts the run's secrets everywhere. It does not know
// repositories, forges, agents, or what events mean for the current run.
package record
