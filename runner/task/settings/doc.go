// Package settings owns what a run goes by: which file of which commit configures
// it, what the environment and the flags say besides, the rules on commands, the
// schema of its output, the limits that may be raised later, and what of all that
// is secret. It refuses to know tasks, forges and what a run does.
package settings
