// Package code owns code mode: the tools exec and wait, by which a model calls all others in a
// script of JavaScript. It knows how tools are told to a script, the processes that scripts run in
// and what they may take, the cells that go on while the model does something else, and what is stored
// between them. What a call does is its tool's, and whether it may, the dispatcher's.
package code
