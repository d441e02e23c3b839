// Package judge owns whether a change may be published: by its size, by the
// secrets in it, and by what the job's policy says of the paths that it touches.
// It refuses to know where a change goes, and writes to no checkout.
package judge
