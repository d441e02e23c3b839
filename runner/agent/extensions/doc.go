// Package extensions owns what a job brings from outside for the agent to call: the servers
// of the Model Context Protocol and the tools of the job's own, from their start to their end,
// in sandboxes that package confine opens. It fails closed: what does not come, or is not what
// the job says, ends the run before anything is paid. It knows neither the conversation nor
// what becomes of a change.
package extensions
