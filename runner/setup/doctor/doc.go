// Package doctor diagnoses a machine: confinement of commands, git, and access to model API and
// GitHub. It does not know runs; it examines the parts of a sandbox for a person's command.
package doctor
