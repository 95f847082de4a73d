package main

import "testing"

// TestOnTheClock runs what looks at the clock while processes wait for each other: no
// test that keeps the cores busy runs beside it. The longest of these takes a fifth of
// two cores and most of the time, so that the others take turns beside it.
func TestOnTheClock(t *testing.T) {
	t.Run("SplitDemo", func(t *testing.T) {
		t.Parallel()
		splitDemo(t)
	})
	t.Run("InTurn", func(t *testing.T) {
		t.Parallel()
		t.Run("LiveDemo", liveDemo)
		t.Run("CodingDemo", codingDemo)
		t.Run("TheBusGoesAway", theBusGoesAway)
		t.Run("EntriesStartWithoutTheBus", entriesStartWithoutTheBus)
		t.Run("TheSpoolIsFull", theSpoolIsFull)
		t.Run("EntriesStopUnderLoad", entriesStopUnderLoad)
		t.Run("TwoEntriesOfOneName", twoEntriesOfOneName)
		t.Run("StaleClients", allStaleClients)
	})
}
