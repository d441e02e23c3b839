// Package github speaks to the GitHub REST and GraphQL APIs of github.com and
// of GitHub Enterprise Server: its Client is a forge.Forge. It owns where the
// token may go, which failures are tried again, and what a failure means for a
// person. It knows nothing of jobs, runs, or what a pull request says.
//
// Everything it reads (titles, bodies, comments, names, error messages) was
// written by strangers and is handed on as text without any meaning.
package github
