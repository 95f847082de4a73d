// Package screen shows a person how a demonstration goes: on a terminal a picture
// that is drawn again in its place, elsewhere plain lines.
//
// A [Frame] has both: the picture's lines, and one line that says the same in
// short. Off a terminal only the latter is printed, and only when it has changed
// and some time has passed. What is said for good ([Screen.Say]) stands above the
// picture and stays.
//
// Nothing that a picture holds can move the cursor: control characters are shown
// as dots, and lines are cut at the terminal's width, so that each takes one row.
package screen
