// Package record owns what a run leaves behind: its directory, the transcript,
// warnings, the logs of commands, the digests of files, and the view of all that.
// No secret of the run gets past it. It refuses to know repositories, forges and
// agents, and what the events mean for the run that writes them.
package record
