// Package repair finds the failed checks of a run's own pull request, decides whether and how to
// repair them, and reports that to the agent and in the pull request's one comment.
//
// It does not know how an agent works or how a change is published.
package repair
