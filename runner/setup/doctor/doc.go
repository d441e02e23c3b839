// Package doctor owns the diagnosis of a machine: how commands would be confined,
// what of git there is, and whether the model's API and GitHub would let a run in. It
// refuses to know runs: what it looks at is what a sandbox for a person's command is
// made of.
package doctor
