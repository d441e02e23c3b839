// Package resolve owns how the targets of a campaign file become those of a plan: they are gathered
// from the list, a file, a command and the forge, looked at on the forge, a hundred at a time, and
// frozen, each with what keeps it from running. It refuses to know what is done with a plan, and
// what runs cost.
//
// Names, paths and values of targets were written by strangers: they are text, compared and handed on.
package resolve
