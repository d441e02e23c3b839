// Package intake finds out what a run is asked to do, and whether who asks may:
// from the event that started the workflow, the job, and what people wrote on the
// forge, as it stood there when the run was asked for. It owns the Task, and the
// marks by which a later run knows what an earlier one left on the forge. It
// refuses to know the checkout, and how a change is published.
package intake
