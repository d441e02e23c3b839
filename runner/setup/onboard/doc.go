// Package onboard owns what a repository begins with: the workflow and the defaults
// that init writes, and, on GitHub, the pull request that adds them with the secret,
// the label and the setting which they need, or removes them. It refuses to know runs,
// and how a person is asked.
package onboard
