// Package onboard sets up a repository: the workflow and defaults of init, and on GitHub the pull
// request with them and its secret, label and setting, or their removal. It does not know runs or
// the dialogue with people.
package onboard
