// Package intake determines the task of a run, and whether its requester is trusted. Its sources
// are the workflow's event, the job, and texts on the forge from before the request. It owns the
// Task, and the marks left on the forge by earlier runs for later ones. It knows nothing of the
// checkout or of publishing a change.
package intake
