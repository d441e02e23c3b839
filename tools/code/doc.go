// Package code owns code mode: the tools exec and wait, which run JavaScript that calls other tools. It
// describes the tools to scripts, and runs and limits engine processes. It keeps scripts that outlive
// their call (cells), and the values that scripts store. The dispatcher checks and runs a script's
// calls.
package code
