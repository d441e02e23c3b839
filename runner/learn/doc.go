// Package learn owns what the records of past runs show of a repository, counted without a model:
// checks that are flaky and how long each takes, hosts that were refused, programs that were
// missing, setup commands that failed. It refuses to know how a run works and where lessons are
// kept.
//
// Records were written by whoever made the runs: names in them are kept short and shown as text.
package learn
