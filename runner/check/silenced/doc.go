// Package silenced owns the signs that a check may pass without testing: a table of patterns for the lines of
// a change, and what checks did on the base and on the change. It refuses to know what becomes of a change
// that has such a sign.
package silenced
