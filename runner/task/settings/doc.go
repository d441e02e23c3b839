// Package settings reads the configuration of a run: the configuration files and their commits,
// environment and flags, the rules on commands and the output schema. It also knows the limits that
// a user may raise later, and the secret values in all of these. It knows no tasks, no forges and
// no steps of a run.
package settings
