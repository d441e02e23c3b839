// Package job owns the keys of the job file, and how they hang together. It reads no repository, no
// environment and no network: its callers pass the bytes of a job.
//
// The keys are the fields of [Job]. The table in rules.go says of each key what a type cannot: its meaning,
// default and allowed values. Package config makes loading, messages and the schema of these two.
package job
