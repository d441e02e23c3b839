// Package dynamic owns tools that a job declares and a program of the job answers: one process
// for each call, or one that serves all. It knows no job, no transcript and no wire format.
package dynamic
