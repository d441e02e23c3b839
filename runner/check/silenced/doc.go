// Package silenced owns the signs that a check may pass without testing. It has a table of patterns
// for changed lines, and compares the checks on the base with those on the change. Other packages
// decide about the change.
package silenced
