// Package form owns what texts of a configuration may be: lines, paths, variables, names of branches and
// repositories, and references to issues.
package form
