// Package silenced owns the signs of a check that may pass without testing: a table of patterns for the
// lines of a change, and a comparison of the checks on the base and on the change. Others decide about
// the change.
package silenced
