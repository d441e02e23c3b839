// Package skills owns the skills of a run: which folders of the base commit have them, how
// their front matter is read (agentskills.io, as leniently as its guide for clients says),
// what the model is told of them at the start, and how they are kept so that a run that goes
// on and a replay have the same. It refuses to know models, conversations and the work tree:
// a skill is what the base commit says.
package skills
