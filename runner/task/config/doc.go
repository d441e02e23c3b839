// Package config reads configuration files: YAML in layers, each overriding the earlier ones. It
// reports mistakes with their lines and a suggestion, and produces the JSON Schema of a file.
//
// A [Format] is a Go type with the rule of each key in the tags of its field. Loading, messages,
// variables, --set, the schema and the tables of the documents are derived from both. The package
// knows no key by itself.
package config
