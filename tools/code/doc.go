// Package code owns code mode: the tools exec and wait, which call other tools from JavaScript. It
// describes tools to scripts, runs and limits engine processes, keeps cells that continue during
// other calls, and keeps their stored values. The tools do the work of calls; the dispatcher judges
// them.
package code
