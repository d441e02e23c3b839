// Package job owns the YAML job file: its keys, defaults, validation and JSON
// Schema, and how the layers that override one another are merged. It reads
// no repository and no network; who has the bytes of a job hands them in.
package job
