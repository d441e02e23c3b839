// Package team owns the subagents of a run: permission to start, budget shares, status, reports to
// the starter, merges of copies, and ending every subagent with its starter. It does not know the
// model's tools for managing subagents, nor how work is verified and published.
package team
