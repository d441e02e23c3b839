// Package agents owns the tools for starting subagents, talking to them, waiting for them and
// merging their changes, in the forms known to models, and the messages about subagents. The Team
// knows what a subagent is and how it runs.
package agents
