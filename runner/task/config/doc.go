// Package config owns reading configuration files: YAML in layers that override one another, mistakes with
// their lines and with what was probably meant, and the JSON Schema of a file.
//
// A [Format] is a Go type and one [Rule] for each of its keys. Loading, messages, the variables and --set,
// the schema and the tables of the documents come from these two. It refuses to know any key.
package config
