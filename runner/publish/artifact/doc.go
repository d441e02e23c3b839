// Package artifact makes a run directory from a workflow's upload. Whoever can write to the
// workflow's runner, or to a fork's pull request, may have made all of it: names, sizes and
// contents are bounded and checked before use, only files vouched for by the transcript's chain are
// kept, and the report is regenerated from the transcript.
//
// It knows no agent or job, and does not identify an artifact's author: a consistent chain can be forged as a whole.
package artifact
