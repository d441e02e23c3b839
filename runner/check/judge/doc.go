// Package judge decides whether a change may be published: by size, secrets, and the job's policy
// on paths. It does not know the destination and writes to no checkout.
package judge
