// Package policy owns decisions about what a run may do: which commands may
// start, which variables they see and which hosts they reach, and what a change
// may touch. It knows
// patterns, rules and names; it starts nothing and reads no file. How commands
// are confined is sandbox's, how secrets are found secrets'.
package policy
