// Package assembly owns an agent that can work, assembled from its conversation, model, tools, hooks,
// skills and lessons: what it gets from the runner and asks people, and how it resumes and ends. It
// does not know how work is verified and published.
package assembly
