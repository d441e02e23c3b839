// Package form checks texts in a configuration: lines, paths, variables, names of branches and
// repositories, and references to issues.
package form
