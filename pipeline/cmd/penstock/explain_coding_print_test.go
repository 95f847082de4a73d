package main

import (
	"strings"
	"testing"

	"penstock/consumers/decider/coding"
)

// TestTheCapacityOfCodesAsItIsPrinted: stores may do with less than connections can.
func TestTheCapacityOfCodesAsItIsPrinted(t *testing.T) {
	var b strings.Builder
	printOperation(&b, "reads", &coding.OperationView{
		SizeMB: 3, Limits: coding.LimitsView{Connections: 16}, BestIdle: coding.Code{N: 12, K: 6}, Capacity: coding.CapacityOfCodes{Least: 75.25, Idle: 30},
	}, []coding.CodeShare{{Code: coding.Code{N: 2, K: 1}, Share: 0.5}})
	want := "\nreads of 3 MB on average, over 16 connections: an empty queue gets (12,6)\n" +
		"  capacity, by connections alone: 75.25 a second with (1,1), 30 with that\n  codes of the windows that count: (2,1) 50 %\n"
	if b.String() != want {
		t.Errorf("got %q, expected %q", b.String(), want)
	}
}
