// Package skills owns a run's skills: finding them in the base commit, parsing their front matter
// (agentskills.io, as lenient as its client guide), the catalogue for the model, and a stored copy
// for resumed and replayed runs. It does not know models, conversations or the work tree.
package skills
