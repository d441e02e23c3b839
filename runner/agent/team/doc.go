// Package team owns the subagents of a run. It decides which may start and with what share of the
// budget, reports their status to their starters, merges their copies of the tree, and ends them
// with their starters. It does not know the inputs and outputs of the model's tools for subagents,
// nor how work is verified and published.
package team
