// Package artifact makes a run directory from a workflow's upload. The upload is not trusted: anybody who can
// write to the workflow's runner, or to a fork's pull request, may have made all of it. So names, sizes and
// contents are checked before use. Only files with a digest in the transcript's chain are kept. The report is
// regenerated from the transcript.
//
// The package knows no agent or job. It cannot tell who made an artifact, because a consistent chain can be
// forged as a whole.
package artifact
