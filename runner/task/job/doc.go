// Package job owns the YAML job file: its keys, defaults, validation and JSON
// Schema, and how the layers that override one another are merged. It reads
// no repository, no environment and no network; who has the bytes of a job
// hands them in.
//
// The keys are the fields of [Job]. What a type cannot say of a key (meaning,
// default, allowed values, whether this version supports it) stands in one
// table in rules.go. Loading, the schema and docs/reference/job.md all come from those two.
package job
