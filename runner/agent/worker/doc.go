// Package worker owns one working agent: its model, tools, messages from the runner, questions to
// people and budget. It does not know how work is verified and published.
package worker
