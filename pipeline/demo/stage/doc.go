// Package stage is what demonstrations stand on besides their processes: a folder
// of their own, and the bus as an operator and an onlooker see it.
//
// It keeps no state.
package stage
