// Package agents owns the tools for starting agents, talking to them, waiting for them and merging
// their changes, in the two forms known to models, and the messages about agents. The Team knows
// what an agent is and how it runs.
package agents
