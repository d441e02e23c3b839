// Package dynamic owns a job's own tools, answered by a program of the job for each call, or by one
// for all. It knows no job, transcript or wire format.
package dynamic
