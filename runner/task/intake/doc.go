// Package intake determines the task of a run, and whether its requester is trusted. Its sources
// are the event of the workflow, the job, and texts on the forge as of the time of the request. It
// owns the Task, and the marks that earlier runs leave on the forge for later ones. It knows
// nothing of the checkout or of publishing a change.
package intake
