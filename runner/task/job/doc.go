// Package job defines the keys of the job file and checks them against each other. It reads no
// repository, no environment and no network: callers pass the bytes of a job.
//
// The keys are the fields of [Job]. Their tags hold meaning, default and allowed values. Package
// config derives loading, messages and the schema from both.
package job
