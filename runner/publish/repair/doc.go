// Package repair finds out what is red on a run's own pull request, whether and how that
// may be repaired, and says so: to the agent, and in the one comment on the pull request.
// It refuses to know how an agent works, and how a change is published.
package repair
