// Package settings reads the configuration of a run: the configuration files and their commits,
// environment and flags, the rules on commands, the output schema, the limits that a user may raise
// later, and the secret values among all these. It knows no tasks, no forges and no steps of a run.
package settings
