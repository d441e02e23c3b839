// Package team owns the agents started by agents of a run: permission to start, budget shares,
// status, reports to the starter, merges of copies, and ending every agent with its starter. It
// does not know the model's tools for managing agents, nor how work is verified and published.
package team
