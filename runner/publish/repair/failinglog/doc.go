// Package failinglog cuts the log of a job of GitHub Actions down to what tells why the job
// failed: the part of the failing step, and of that its end, the errors that it marks, and
// the first lines that look like errors. It owns how a log is read in bounded memory,
// whatever its length. It refuses to know what a line means: a log is the word of whatever
// ran in the job.
package failinglog
