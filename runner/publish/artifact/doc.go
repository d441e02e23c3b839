// Package artifact makes a run directory of what a workflow uploaded of a run.
// Whoever can write to the workflow's runner, or to a pull request of a fork, may
// have made all of it: names, sizes and contents are bounded and checked before
// they are used, nothing is kept that the transcript's chain does not vouch for,
// and no page of it is: the report is made anew from the transcript.
//
// It knows no agent and no job, and says nothing of who made an artifact: a chain
// that fits can be forged as a whole.
package artifact
