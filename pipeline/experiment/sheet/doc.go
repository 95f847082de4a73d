// Package sheet holds what experiments come to as people read it: tables, figures
// of a paper beside ours, plots, as text and as one page that loads nothing from
// elsewhere. It has no state. Failures are of drawing and of writing files.
package sheet
