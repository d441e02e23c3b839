// Package policy owns decisions about what a run may do: which files a change
// may touch, and which variables a command sees. It knows patterns and names;
// it starts nothing and reads no file. How commands are confined is sandbox's,
// how secrets are found secrets'.
package policy
