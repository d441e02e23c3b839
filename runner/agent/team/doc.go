// Package team owns the agents that agents of a run start: who may be started, which share of the
// budget each has, how each stands, what is told of it to the one that asked, how the change of one
// that worked on a copy is merged, and that none outlives the one that started it. It refuses to
// know by which tools models lead agents, and how the work of a run is verified and published.
package team
